"""The candidates of many documents, ranked, and how the judge compared with people over all of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ..agreement.intervals import FEWEST, Figure
from ..agreement.levels import agreement
from ..errors import InputError
from ..reading.verdict import read_verdict
from ..rows import read_rows

if TYPE_CHECKING:
    from .diagnostics import Accuracy, Position
    from .outcomes import Outcome, Ranking


@dataclass(frozen=True)
class Place:
    """Where one candidate came out; its rank is among the candidates of its document, or among all systems."""

    candidate: str
    document: str | None
    rank: int | None
    score: float | None
    std_error: float | None
    human: float | None


@dataclass(frozen=True)
class Ranked:
    """What comparisons of candidates, within documents, come to.

    Attributes:
        calls, unread, ties: comparisons asked, those without an answer, and those that came out even.
        position: how often the first position wins, and verdicts flip.
        alpha: the weight that would debias the position (Liusie et al. 2024, eq. 9); None where none would.
        accuracy: against people's scores, over pairs that people scored differently.
        cyclic, triples: triples that run in a circle, of those whose three pairs were all compared.
        bias: the ranking method's own estimate of the first position's pull; its mean over the documents' comparisons.
        places: the ranking.
        methods: for each ranking method, Spearman's ρ between its ranking and people's.
    """

    criterion: str
    method: str
    calls: int
    unread: int
    ties: int
    position: Position
    alpha: float | None
    accuracy: Accuracy
    cyclic: int
    triples: int
    bias: float | None
    places: list[Place]
    methods: dict[str, Figure]
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        first = self.position.p_first
        return {
            "criterion": self.criterion,
            "method": self.method,
            "calls": self.calls,
            "unread": self.unread,
            "ties": self.ties,
            "position": {"p_first": first.value, "low": first.low, "high": first.high},
            "flip_rate": self.position.flip_rate,
            "flips": {name: getattr(self.position, name) for name in ("n_pairs", "reversals", "one_sided_ties")},
            "debias_alpha": self.alpha,
            "accuracy": {"one_order": self.accuracy.one_order, "both_orders": self.accuracy.both_orders},
            "cyclic_triples": {"cyclic": self.cyclic, "complete": self.triples},
            "ranking": [asdict(place) for place in self.places],
            "bias": self.bias,
            "spearman_by_method": {name: figure.value for name, figure in self.methods.items()},
            "spearman_intervals": {
                name: {each: getattr(figure, each) for each in ("value", "low", "high", "n", "why_not")}
                for name, figure in self.methods.items()
            },
            "notes": self.notes,
        }


def ranked(
    criterion: str,
    method: str,
    judged: Mapping[str | None, Sequence[Outcome]],
    human: Mapping[tuple[str | None, Hashable], float],
    systems: bool,
) -> Ranked:
    """Rank candidates from outcomes by document, and say how the judge compared.

    Args:
        criterion: the criterion's name.
        method: a key of `ranking.METHODS`.
        judged: outcomes between the candidates of each document.
        human: people's scores by document and candidate.
        systems: whether candidates are systems that are the same in all documents and are ranked over all of them;
            else each document's candidates are ranked among themselves.
    """
    from .. import ranking

    # A candidate of one document is another one than its namesake in the next.
    apart = [
        ranking.Outcome((document, each.first), (document, each.second), each.p_first)
        for document, each_outcomes in judged.items()
        for each in each_outcomes
    ]
    scored = [each for each in apart if each.first in human and each.second in human]
    cyclic = [ranking.cyclic_triples(each_outcomes) for each_outcomes in judged.values()]
    places_of = [document for document, each_outcomes in judged.items() for _ in each_outcomes]
    groups: dict[str | None, Sequence[Outcome]] = dict(judged)
    people: dict[tuple[str | None, Hashable], float] = dict(human)
    if systems:
        groups = {None: [each for each_outcomes in judged.values() for each in each_outcomes]}
        by_system: dict[Hashable, list[float]] = {}
        for (_, name), score in human.items():
            by_system.setdefault(name, []).append(score)
        people = {(None, name): fmean(scores) for name, scores in by_system.items()}

    def fitted(by: str) -> dict[str | None, Ranking]:
        if systems and by == "bradley-terry" and len(judged) >= FEWEST:
            return {None: ranking.bradley_terry(groups[None], groups=places_of)}
        return {document: ranking.METHODS[by](each_outcomes) for document, each_outcomes in groups.items()}

    def places(results: Mapping[str | None, Ranking]) -> list[Place]:
        made = []
        for document, result in results.items():
            ranks = result.ranks()
            for name in sorted(ranks, key=lambda name: (ranks[name] or len(ranks) + 1, str(name))):
                human = people.get((document, name))
                made.append(
                    Place(str(name), document, ranks[name], result.scores[name], result.std_errors[name], human)
                )
        return made

    chosen = fitted(method)
    rows = places(chosen)
    methods = {by: _with_people(rows if by == method else places(fitted(by))) for by in ranking.METHODS if people}
    return Ranked(
        criterion=criterion,
        method=method,
        calls=len(apart),
        unread=sum(each.p_first is None for each in apart),
        ties=sum(each.p_first == 0.5 for each in apart),
        position=ranking.position(apart, places_of),
        alpha=ranking.debias(apart)[0],
        accuracy=ranking.pairwise_accuracy(scored, human),
        cyclic=sum(circles for circles, _ in cyclic),
        triples=sum(complete for _, complete in cyclic),
        bias=_pooled(chosen.values()),
        places=rows,
        methods=methods,
        notes=list(dict.fromkeys(note for result in chosen.values() for note in result.notes)),
    )


def _pooled(rankings: Iterable[Ranking]) -> float | None:
    """The mean bias, each ranking counting as often as it has comparisons."""
    biases = [(each.n, each.bias) for each in rankings if each.bias is not None]
    return sum(n * bias for n, bias in biases) / sum(n for n, _ in biases) if biases else None


def _with_people(places: Sequence[Place]) -> Figure:
    """Spearman's ρ with people's scores: within documents, resampling these; of a single ranking, over candidates."""
    documents = [place.document for place in places]
    scores, human = [place.score for place in places], [place.human for place in places]
    if len(set(documents)) == 1:
        return agreement(scores, human).dataset.spearman
    level = agreement(scores, human, documents).document
    assert level is not None
    return level.spearman


def read_replies(path: str) -> tuple[dict[str | None, list[Outcome]], dict[tuple[str | None, Hashable], float]]:
    """Outcomes and people's scores from stored replies: rows with `first`, `second`, `response` and, where known,
    `doc_id`, `human_first` and `human_second`.

    Raises:
        InputError: the file cannot be read, or a row lacks a field.
    """
    from .outcomes import Outcome

    judged: dict[str | None, list[Outcome]] = {}
    human: dict[tuple[str | None, Hashable], float] = {}

    def add(row: Mapping[str, Any], number: int) -> None:
        if missing := [name for name in ("first", "second", "response") if row.get(name) is None]:
            raise InputError(f"no {' and no '.join(missing)}; stored replies have first, second and response")
        document = None if row.get("doc_id") is None else str(row["doc_id"])
        first, second = str(row["first"]), str(row["second"])
        if first == second:
            raise InputError(f"compares {first!r} with itself")
        judged.setdefault(document, []).append(Outcome(first, second, read_verdict(str(row["response"])).score))
        for name, score in ((first, row.get("human_first")), (second, row.get("human_second"))):
            if score is not None:
                human[document, name] = float(score)

    for _ in read_rows(path, add):
        pass
    return judged, human
