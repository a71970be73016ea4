"""`geval prompt`: the messages that a judge would be sent."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from .. import report
from ..criteria import find_criterion
from ..messages import text_of
from ..rating import GEval
from ..samples import Sample
from .app import verb
from .options import (
    ControlTokensOption,
    FieldOption,
    FormOption,
    InputOptions,
    JsonOption,
    PromptFileOption,
    RecipeOption,
    StepsOption,
)


@verb("prompt")
def show_prompt(
    criterion: Annotated[str, typer.Argument(help="A registered name, a YAML file, or free text.")],
    input: Annotated[str | None, typer.Argument(help="A file of which the first request is shown.")] = None,
    recipe: RecipeOption = None,
    form: FormOption = None,
    steps: StepsOption = None,
    prompt_file: PromptFileOption = None,
    control_tokens: ControlTokensOption = "inert",
    field: FieldOption = [],  # noqa: B006
    as_json: JsonOption = False,
) -> None:
    """Print the exact messages that would be sent."""
    chosen = find_criterion(criterion)
    # Nothing is asked of this judge: the messages are the same for any.
    geval = GEval(
        chosen, "openai/none", recipe=recipe, form=form, steps=steps, prompt_file=prompt_file,
        control_tokens=control_tokens,
    )  # fmt: skip
    placeholder = Sample("{output}", source="{source}", context="{context}", reference="{reference}")
    samples = list(InputOptions(field, limit=geval.way.together).read(input, [chosen])) if input else [placeholder]
    for question in geval.way.questions(samples):
        if as_json:
            typer.echo(json.dumps(question.messages, indent=2))
        else:
            for message in question.messages:
                typer.echo(f"[{message['role']}]\n{report.plain_lines(text_of(message))}")
            if question.start:
                typer.echo(f"\n[assistant, where the model can continue it]\n{question.start}")
