"""`geval tune`: find a way of rating that agrees better with people."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import report
from ..criteria import Criterion, Example, find_criterion
from ..errors import InputError
from ..examples import Shots
from ..judge.client import LiteLLMJudge
from ..rating import GEval
from ..runs.progress import output_console, progress_bar, say, say_faults
from ..samples import Sample
from .app import verb
from .ending import Exit, warn_of_embedded, write
from .options import HtmlOption, InputOptions, JsonOption, JudgesOptions, words_of

if TYPE_CHECKING:
    from ..tune import Candidate, Scored

INTERRUPTED = "interrupted"


@verb("tune")
def tune(
    input: Annotated[str, typer.Argument(help="Samples; those with people's scores are used.")],
    criterion: Annotated[str, typer.Option("--criterion", "-c", help="As in `geval score`; one at a time.")],
    labels: Annotated[
        Path | None,
        typer.Option(help="Labels of `geval label`, or others; default: scores that came with the samples."),
    ] = None,
    budget: Annotated[int, typer.Option(min=1, help="Requests in all.")] = 2000,
    tried: Annotated[
        list[str],
        typer.Option(
            "--try", metavar="NAME=VALUE,…", help="A way to try, by options of `geval score`; instead of the usual."
        ),
    ] = [],  # noqa: B006
    seed: Annotated[int, typer.Option(help="Decides which documents are held out.")] = 0,
    *,
    asking: JudgesOptions,
    reading: InputOptions,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Try ways of rating on samples that people have scored, and say which agrees best with them, and at what cost.

    The better half goes on from round to round; the last one left is held against the default on documents that took no
    part in the choice. Exit code: 0 a way was better than the default, 1 stopped by the budget or nothing could be
    rated, 2 bad usage or input, 3 nothing was shown to be better, 130 interrupted; what was learnt is shown.
    """
    from ..tune import Split, Tuning, compared, usual

    if asking.batch:
        raise InputError("--batch: each round of tuning waits for the one before, which would take days")
    if asking.max_requests:
        raise InputError("--max-requests: give --budget, which is the same here")
    chosen = find_criterion(criterion)
    data = reading.read(input, [chosen])
    parts = list(data.judged(chosen))
    people = _people(labels, chosen, parts)
    samples = [sample for sample in parts if sample.id in people]
    if not samples:
        raise InputError(f"{labels or input}: holds no scores of people by {chosen.name!r} for any of the samples")
    judges = replace(asking, max_requests=budget, batch=False).judges()
    for judge in judges:
        judge.budget = judges[0].budget  # one for all
    # By the names that `--model` takes: those of a router's judges are others.
    models: list[str | None] = [*dict.fromkeys(asking.model)] or [None if asking.router else judges[0].name]
    split = Split.of(samples, seed)
    examples = [
        Example(each.output, people[each.id], each.source, each.context, each.reference, each.id, each.doc_id)
        for group in split.chosen_on
        for each in group
    ]
    raters = _Raters(chosen, dict(zip(models, judges, strict=True)), examples)
    if tried:
        candidates = compared(models, tried)
        for each in candidates:
            raters.add(each)
    else:
        candidates = raters.those_usable(compared(models, usual(chosen)))
    for judge in judges:
        warn_of_embedded(judge)
    ends = (chosen.scale.low, chosen.scale.high)
    sent = judges[0].budget
    with progress_bar(budget, 0) as raters.tick:
        tuning = Tuning(chosen.name, ends, candidates, split, people, raters.rate, lambda: sent.requests, budget)
        try:
            found = asyncio.run(tuning.run())
        except KeyboardInterrupt:
            found = tuning.so_far(INTERRUPTED)
    best = found.winner if found.winner and found.better else found.default
    shown = ["--examples", str(labels or input), "--shots", str(best.shots)] if best.shots else []
    asked = [word for each in best.members or (best,) if each.model for word in ("--model", each.model)]
    more = words_of(reading, asking, leaving_out=("model",))
    command = shlex.join(["geval", "score", input, "--criterion", criterion, *asked, *best.words(), *shown, *more])
    if html:
        write(html, report.tuned_page(found, command))
    if as_json:
        typer.echo(json.dumps({**found.to_dict(), "command": command}, indent=2))
    else:
        report.print_sections(report.tuned_sections(found, command), output_console())
    for note in [*raters.left_out, *data.notes()]:
        say(note)
    for judge in judges:
        say_faults(judge)
    if found.stopped:
        say(f"stopped: {found.stopped}", "red")
        raise typer.Exit(Exit.INTERRUPTED if found.stopped == INTERRUPTED else Exit.UNRATED)
    raise typer.Exit(Exit.DONE if found.better else Exit.UNDECIDED)


def _people(labels: Path | None, criterion: Criterion, samples: Iterable[Sample]) -> dict[str, float]:
    """People's mean score of each sample that has one."""
    if labels is None:
        given = ((sample.id, sample.human_score(criterion)) for sample in samples)
        return {key: score for key, score in given if score is not None}
    from ..labels.rows import mean_scores, read_labels

    return mean_scores(read_labels(labels, criterion))


@dataclass
class _Raters:
    """What rates by each candidate; judges' replies are shared among those who ask the same.

    Attributes:
        left_out: usual candidates that cannot be tried here, and why.
        tick: moves the progress bar.
    """

    criterion: Criterion
    judges: Mapping[str | None, LiteLLMJudge]
    examples: Sequence[Example]
    left_out: list[str] = field(default_factory=list)
    tick: Callable[[int, str], None] = lambda failed, cost: None
    _gevals: dict[Candidate, GEval] = field(default_factory=dict)
    _begun: set[Candidate] = field(default_factory=set)
    _shown: int = 0
    _failed: int = 0

    def __post_init__(self) -> None:
        from ..tune import Shared

        self._sharing = {model: (judge, Shared()) for model, judge in self.judges.items()}

    def add(self, candidate: Candidate) -> None:
        """Be ready to rate by a candidate.

        Raises:
            InputError: its settings cannot be used.
        """
        from ..tune import Sharing

        for each in candidate.members or (candidate,):
            shots = Shots(tuple(self.examples), self.criterion.scale, each.shots) if each.shots else None
            judge = Sharing(*self._sharing[each.model])
            geval = self._gevals[each] = GEval(self.criterion, judge, examples=shots, **each.options)
            if shots and geval.criterion.scale != shots.scale:
                raise InputError(f"{each.name}: examples are rated on the scale {shots.scale}, so ask for no other one")

    def those_usable(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """The candidates that can be tried here."""
        usable = []
        for each in candidates:
            try:
                self.add(each)
                usable.append(each)
            except InputError as error:
                self.left_out.append(f"{each.name} was not tried: {error}")
        return usable

    async def rate(self, candidate: Candidate, samples: Sequence[Sample]) -> list[Scored]:
        """Rate samples in one way, in their order.

        Raises:
            StopError: the budget is spent.
        """
        from ..tune import Scored

        geval = self._gevals[candidate]
        # What a judge lacks is learnt from one sample, where a request is about one: all at once would each find out.
        alone = int(geval.way.together == 1 and candidate not in self._begun)
        self._begun.add(candidate)
        scored: list[Scored] = []
        for some in (samples[:alone], samples[alone:]):
            async with aclosing(geval.arate_many(some)) as ratings:
                async for rating in ratings:
                    scored.append(Scored(rating.score, rating.usage))
                    self._show(rating.score is None)
        return scored

    def _show(self, failed: bool) -> None:
        """Move the progress bar by the requests that were sent."""
        self._failed += failed
        budget = next(iter(self.judges.values())).budget
        known = all(judge.price(1, 0, 0, 1) is not None for judge in self.judges.values())
        for _ in range(budget.requests - self._shown):
            self.tick(self._failed, report.dollars(budget.cost if known else None))
        self._shown = budget.requests
