"""What people look at: summaries and tables."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .judge import Usage

if TYPE_CHECKING:
    from .agreement import Agreement, Coefficient
    from .comparison import Ranked
    from .estimate import Estimate
    from .findings import Audit, Check, Statistic
    from .metaeval import MetaEvaluation


@dataclass
class Summary:
    """What the ratings of one criterion come to, kept up row by row.

    >>> summary = Summary("coherence")
    >>> summary.to_dict()["mean"] is None
    True
    """

    criterion: str
    n: int = 0
    failed: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    methods: Counter[str] = field(default_factory=Counter)
    signatures: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)
    coverage: float = 0.0
    saved: int = 0
    _mean: float = 0.0
    _squares: float = 0.0

    def add(self, row: Mapping[str, Any]) -> None:
        """Count in one rating, as `Rating.to_dict` gives it.

        Mean and variance after Welford (1962), so that no score has to be kept.
        """
        self.usage += Usage(**row["usage"])
        if row["score"] is None:
            self.failed += 1
            self.reasons[_short(row["error"] or "no reason given")] += 1
            return
        self.n += 1
        self.methods[row["method"]] += 1
        self.signatures[row["signature"]] += 1
        self.coverage += row["coverage"]
        if most := re.search(r"\|n:\d+-(\d+)@", row["signature"]):
            self.saved += int(most[1]) - row["n_valid"] - row["n_failed"]
        step = row["score"] - self._mean
        self._mean += step / self.n
        self._squares += step * (row["score"] - self._mean)

    @property
    def mean(self) -> float | None:
        """The mean of the scores that there are."""
        return self._mean if self.n else None

    @property
    def std_error(self) -> float | None:
        """`s / √n` over samples; None for fewer than two."""
        return math.sqrt(self._squares / (self.n - 1) / self.n) if self.n > 1 else None

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON has it."""
        return {
            "criterion": self.criterion,
            "n": self.n,
            "mean": self.mean,
            "std_error": self.std_error,
            "failed": self.failed,
            "reasons": dict(self.reasons),
            "methods": dict(self.methods),
            "coverage": self.coverage / self.n if self.n else None,
            "samples_saved": self.saved,
            "usage": vars(self.usage),
            "signatures": list(self.signatures),
        }


def summary_table(summaries: Iterable[Summary], console: Console) -> Table:
    """One row per criterion."""
    rows = [
        [
            each.criterion,
            str(each.n),
            "-" if each.mean is None else f"{each.mean:.3f}",
            "-" if each.std_error is None else f"{each.std_error:.3f}",
            str(each.failed),
            ", ".join(each.methods) or "-",
            f"{each.coverage / each.n:.3f}" if each.n else "-",
            tokens(each.usage),
            cost(each.usage),
        ]
        for each in summaries
    ]
    heads = ("criterion", "n", "mean", "± std. error", "failed", "method", "coverage", "tokens (cached) in/out", "cost")
    return table(heads, rows, console)


def ratings_table(ratings: Sequence[Mapping[str, Any]], console: Console) -> Table:
    """One row per rating, each as `Rating.to_dict` gives it."""
    rows = [
        [
            rating["id"],
            rating["criterion"],
            "-" if rating["score"] is None else f"{rating['score']:.2f}",
            f"{rating['bounds'][0]:.2f}-{rating['bounds'][1]:.2f}",
            f"{rating['coverage']:.2f}",
            rating["method"],
            rating["error"] or rating["output"],
        ]
        for rating in ratings
    ]
    return table(
        ("id", "criterion", "score", "bounds", "coverage", "method", "output, or why there is no score"), rows, console
    )


def estimates_table(estimates: Iterable[Estimate], console: Console) -> Table:
    """One row per criterion."""
    rows = [
        [
            each.criterion,
            str(each.ratings),
            each.readout,
            f"{each.requests:,}",
            f"{each.prompt_tokens:,}",
            f"{each.cacheable_tokens / max(1, each.prompt_tokens):.0%}",
            f"{each.completion_tokens:,}",
            _dollars(each.cost),
            _dollars(each.cost_cached),
        ]
        for each in estimates
    ]
    heads = (
        *("criterion", "ratings", "read by", "requests", "prompt tokens", "cacheable", "completion tokens at most"),
        *("cost at most", "with a prefix cache"),
    )
    return table(heads, rows, console)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], console: Console) -> Table:
    """A table whose cells are shown as they are: no markup, no control characters; bare where it is piped."""
    made = Table(box=SIMPLE if console.is_terminal else None, pad_edge=False)
    for head in heads:
        made.add_column(head, overflow="ellipsis", no_wrap=True)
    for row in rows:
        made.add_row(*(Text(plain(cell)) for cell in row))
    return made


_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str, limit: int = 100) -> str:
    r"""Text that does nothing to a terminal: one line of at most `limit` characters, no control characters.

    >>> plain("a\x1b[31mb\n c")
    'a [31mb c'
    """
    line = " ".join(_CONTROLS.sub(" ", text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def tokens(usage: Usage) -> str:
    """Prompt tokens, those of them that a cache served, and completion tokens."""
    return f"{usage.prompt_tokens:,} ({usage.cached_tokens:,}) / {usage.completion_tokens:,}"


def cost(usage: Usage) -> str:
    """Dollars, or that they are not known."""
    return _dollars(usage.cost)


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else "free" if cost == 0 else f"${cost:.4f}"


def _short(reason: str) -> str:
    """The reason without what differs from reply to reply."""
    return plain(re.sub(r"(no rating in the reply|the judge refused): .*", r"\1", reason, flags=re.DOTALL), 200)


# --- judges against people -------------------------------------------------------------------------------------------

_COEFFICIENTS = {
    "pearson": "Pearson r",
    "spearman": "Spearman ρ",
    "kendall_b": "Kendall τ-b",
    "kendall_c": "Kendall τ-c",
    "pairwise_accuracy": "pairs right",
    "pairwise_accuracy_calibrated": "pairs right (ε)",
}
LEVELS = ("dataset", "document", "system")


@dataclass(frozen=True)
class Card:
    """A finding at a glance; `anchor` names the section that says more."""

    title: str
    badge: str
    tone: str
    text: str
    plot: str
    anchor: str


@dataclass
class Section:
    """A part of a report: what it is about, pictures, a table and remarks. Terminal and page show the same."""

    title: str
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    notes: Sequence[str] = ()
    plots: Sequence[str] = ()
    badge: str = ""
    tone: str = ""
    lead: str = ""
    code: str = ""
    anchor: str = ""
    cards: Sequence[Card] = ()


def agreement_sections(result: MetaEvaluation, levels: Sequence[str] = LEVELS) -> Iterator[Section]:
    """The tables of a meta-evaluation: one per level, then tests and α."""
    everyone = [*result.judges, *result.baselines]
    for level in levels:
        heads = ("judge", "n", "unread", *_COEFFICIENTS.values(), "skipped")
        rows, notes = [], []
        for judged, agreement in everyone:
            figures = getattr(agreement, level)
            if figures is None:
                notes += [f"{_tail(judged.file)}: {note}" for note in agreement.notes if level in note]
                continue
            first = figures.pearson
            shown = [_figure(getattr(figures, name)) for name in _COEFFICIENTS]
            skipped = f"{first.skipped} constant" if first.skipped else "0"
            rows.append([_tail(judged.file), str(first.n), str(judged.unread), *shown, skipped])
        if rows:
            yield Section(f"{level}-level agreement with people: {result.criterion}", heads, rows, _once(notes))
    notes = _once(
        f"{_tail(judged.file)}: {note}" for judged, agreement in result.judges for note in _remarks(agreement)
    )
    if notes:
        yield Section("remarks", notes=notes)
    if result.tests:
        heads = ("judge", "against", "test", "statistic", "p", "p one-sided", "p (Holm)", "n", "unmatched", "")
        rows = [
            [
                *(_tail(test.judge), _tail(test.baseline), test.test),
                *map(_number, (test.statistic, test.p, test.p_one_sided, test.p_holm)),
                *(str(test.n), str(test.unmatched), test.note),
            ]
            for test in result.tests
        ]  # fmt: skip
        what = "Williams: dataset-level r. Permutation over documents: document-level τ-b."
        yield Section("is the judge better than the baseline?", heads, rows, [what])
    if result.alphas:
        rows = [[_tail(name), *map(_number, alphas.values())] for name, alphas in result.alphas.items()]
        yield Section(
            "Krippendorff's α between a judge's replies, and between judges",
            ("", "nominal", "ordinal", "interval"),
            rows,
        )


def agreement_plots(result: MetaEvaluation) -> Iterator[Section]:
    """The pictures of a meta-evaluation."""
    from . import plots

    drawn = []
    for name, level in (("pearson", "dataset"), ("kendall_b", "document")):
        rows: list[plots.Interval] = []
        for judged, agreement in [*result.judges, *result.baselines]:
            figure: Coefficient | None = getattr(getattr(agreement, level), name, None)
            if figure is not None and figure.value is not None:
                rows.append((_tail(judged.file), figure.value, figure.low, figure.high))
        drawn.append(plots.intervals(rows, f"{_COEFFICIENTS[name]}, {level} level"))
    yield Section("agreement, with 95 % intervals", plots=drawn)
    for judged, _ in result.judges:
        pairs = [(i.score, i.human) for i in judged.items.values() if i.score is not None and i.human is not None]
        if pairs:
            judge, human = [score for score, _ in pairs], [score for _, score in pairs]
            drawn = [
                plots.scatter(judge, human, "items by both scores; larger: more items"),
                plots.histogram({"judge": judge, "people": human}, "how often each score is given"),
            ]
            yield Section(_tail(judged.file), plots=drawn)


# --- which is better -------------------------------------------------------------------------------------------------


def ranking_sections(result: Ranked) -> Iterator[Section]:
    """The tables of a ranking: how the judge compared, and what came out."""
    position, accuracy = result.position, result.accuracy
    share = "-"
    if position.p_first is not None:
        share = f"{position.p_first:.3f} [{position.low:.3f}, {position.high:.3f}]"
    rows = [
        ["calls", str(result.calls)],
        ["unread", str(result.unread)],
        ["ties", str(result.ties)],
        ["P(first position wins)", share],
        ["verdicts that flip with the order", f"{_number(position.flip_rate)} of {position.n_pairs} pairs"],
        ["right, each order alone", f"{_number(accuracy.one_order)} of {accuracy.n_one_order}"],
        ["right, both orders together", f"{_number(accuracy.both_orders)} of {accuracy.n_both_orders}"],
        ["cyclic triples", f"{result.cyclic} of {result.triples}"],
        ["debiasing weight α", _number(result.alpha)],
        ["bias of the first position", _number(result.bias)],
    ]
    yield Section(f"comparisons: {result.criterion}", ("", ""), rows)
    rows = [
        [place.candidate, place.document or "-", str(place.rank or "-"), _number(place.score),
         _number(place.std_error), _number(place.human)]
        for place in result.places
    ]  # fmt: skip
    heads = ("candidate", "document", "rank", "score", "± std. error", "people")
    yield Section(f"ranking by {result.method}", heads, rows, result.notes)
    if result.methods:
        rows = [[name, _number(rho)] for name, rho in result.methods.items()]
        yield Section("Spearman ρ of the ranking with people's, by method", ("method", "ρ"), rows)


# --- how biased ------------------------------------------------------------------------------------------------------

_TONES = {"ok": "good", "unclear": "open", "measured": "plain", "not measurable": "plain"}
_LEGEND = (
    "A verdict counts against the judge only where the whole 95 % interval (documents resampled) lies beyond what is"
    " tolerated. unclear: the estimate lies beyond, its interval does not. ok: the estimate is tolerated."
)


def audit_sections(audit: Audit) -> Iterator[Section]:
    """What an audit found, as tables: each check, then all in short, and how to run this judge."""
    yield from _checks(audit, draws=False)
    rows = [
        [check.name, check.criterion, check.verdict, _telling(check), str(check.usage.requests), str(check.failed)]
        for check in audit.checks
    ]
    heads = ("check", "criterion", "verdict", "most telling, or why there is nothing", "calls", "no score")
    yield Section(f"how biased is {audit.judge}?", heads, rows, _about(audit))
    yield from _recipes(audit)


def audit_page(audit: Audit) -> Iterator[Section]:
    """The same to look at: a card for each check, the recipe, and each check with its pictures."""
    cards = [
        Card(
            f"{check.name}, {check.criterion}",
            check.verdict,
            _TONES.get(check.verdict, "bad"),
            _telling(check, with_paper=False),
            _gauge(check),
            _anchor(check),
        )
        for check in audit.checks
    ]
    yield Section(f"how biased is {audit.judge}?", notes=_about(audit), cards=cards)
    yield from _recipes(audit)
    yield from _checks(audit, draws=True)


def _about(audit: Audit) -> list[str]:
    budget = f", budget {audit.budget}" if audit.budget is not None else ""
    spent = f"{audit.usage.requests} calls{budget}, cost {cost(audit.usage)}"
    return [*audit.notes, f"{audit.samples} samples of {audit.documents} documents, {spent}", _LEGEND]


def _recipes(audit: Audit) -> Iterator[Section]:
    for recipe in audit.recipes:
        rows = [[each.option, each.value, each.reason, "yes" if each.measured else "no"] for each in recipe.choices]
        title = f"recommended for {recipe.criterion} with {audit.judge}"
        yield Section(title, ("option", "value", "why", "measured here"), rows, code=recipe.command)


def _checks(audit: Audit, draws: bool) -> Iterator[Section]:
    for check in audit.checks:
        names = list(dict.fromkeys(statistic.name for statistic in check.statistics))
        subjects = list(dict.fromkeys(statistic.subject for statistic in check.statistics))
        cells = {(each.subject, each.name): _cell(each) for each in check.statistics}
        failed = f", {check.failed} of {check.asked} answers without a score" if check.failed else ""
        yield Section(
            f"{check.name}, {check.criterion}",
            ("", *names) if names else (),
            [[plain(subject), *(cells.get((subject, name), "") for name in names)] for subject in subjects],
            [*check.notes, f"{check.usage.requests} calls{failed}"],
            [*_pictures(check)] if draws else (),
            check.verdict,
            _TONES.get(check.verdict, "bad"),
            " ".join(part for part in (check.reason, check.did, "" if check.verdict == "ok" else check.advice) if part),
            anchor=_anchor(check),
        )


def _telling(check: Check, with_paper: bool = True) -> str:
    statistic = check.telling
    if check.reason or statistic is None:
        return check.reason
    return f"{statistic.name}, {plain(statistic.subject, 40)}: {_cell(statistic, with_paper)}"


def _cell(statistic: Statistic, with_paper: bool = True) -> str:
    found = statistic.figure
    if found.value is None:
        return "-"
    value = f"{found.value:.0f}" if found.value.is_integer() and found.value > 1 else f"{found.value:.2f}"
    interval = f" [{found.low:.2f}, {found.high:.2f}]" if found.low is not None and found.high is not None else ""
    mark = {"beyond": " ▲", "unclear": " ?"}.get(statistic.verdict, "")
    return f"{value}{interval}{mark}" + (f" (paper: {statistic.paper})" if statistic.paper and with_paper else "")


def _gauge(check: Check) -> str:
    from . import plots

    statistic = check.telling
    if check.reason or statistic is None or statistic.tolerated is None or statistic.figure.value is None:
        return ""
    found = statistic.figure
    return plots.gauge((statistic.figure.value, found.low, found.high), statistic.tolerated, statistic.verdict)


def _pictures(check: Check) -> Iterator[str]:
    from . import plots

    counted = {each.name: each.tolerated for each in check.statistics if each.tolerated}
    for name, band in counted.items():
        own = [(each.subject, each.figure) for each in check.statistics if each.name == name]
        rows = [
            (plain(subject, 40), each.value, each.low, each.high) for subject, each in own if each.value is not None
        ]
        if len(rows) > 1:  # a single one is on the card
            yield plots.intervals(rows, f"{name}; shaded: tolerated", band)
    for picture in check.pictures:
        series = {plain(name, 40): values for name, values in picture.series.items()}
        if not series:
            continue
        if picture.kind == "matrix":
            yield plots.matrix(series, picture.title)
        else:
            draw = getattr(plots, picture.kind)
            yield draw(series, picture.title, picture.x, picture.y)


def _anchor(check: Check) -> str:
    return re.sub(r"\W+", "-", f"{check.name}-{check.criterion}")


def print_sections(sections: Iterable[Section], console: Console) -> None:
    """Sections as terminal tables."""
    for section in sections:
        console.print(Text(f"{section.title}  {section.badge}".rstrip(), style="bold"))
        if section.lead:
            console.print(Text(plain(section.lead, 1000)), soft_wrap=True)
        if section.code:
            console.print(Text(section.code), soft_wrap=True)
        if section.rows:
            console.print(table(section.heads, section.rows, console))
        for note in section.notes:
            console.print(Text(plain(note, 400), style="dim"), soft_wrap=True)
        console.print()


def page(title: str, sections: Iterable[Section]) -> str:
    """Sections as one self-contained HTML page; all text in it is escaped."""
    import jinja2

    source = (Path(__file__).parent / "page.html.jinja").read_text(encoding="utf-8")
    template = jinja2.Environment(autoescape=True).from_string(source)
    return template.render(title=title, sections=list(sections))


def _figure(figure: Coefficient) -> str:
    if figure.value is None:
        return "undefined"
    interval = f" [{figure.low:.3f}, {figure.high:.3f}]" if figure.low is not None and figure.high is not None else ""
    return f"{figure.value:.3f}{interval}"


def _remarks(agreement: Agreement) -> Iterator[str]:
    yield from agreement.notes
    for level in LEVELS:
        figures = getattr(agreement, level)
        for name, shown in _COEFFICIENTS.items() if figures else ():
            figure = getattr(figures, name)
            if figure.value is None:
                yield f"{shown}, {level} level, is {figure.note}"
            elif figure.skipped and figure.value_constant_as_zero is not None:
                zero = figure.value_constant_as_zero
                yield f"{shown}, {level} level: {zero:.3f} if the {figure.skipped} constant documents count as 0"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}" if abs(value) < 0.001 else f"{value:.3f}"


def _tail(name: str) -> str:
    return plain(Path(name).name, 60)


def _once(notes: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(notes))
