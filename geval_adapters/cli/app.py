"""The app that every verb registers itself on, and how a verb takes groups of options and lists allowed values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from . import settings

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _say_version(asked: bool) -> None:
    if asked:
        from ..signature import version

        typer.echo(f"geval-adapters {version()}")
        raise typer.Exit


@app.callback()
def every_command(
    version: Annotated[bool, typer.Option("--version", is_eager=True, callback=_say_version)] = False,
) -> None:
    """Rate text with an LLM as the judge, and know how far to trust the numbers."""


def verb(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a verb of the command line.

    A parameter whose type is a dataclass stands for a group of options, one for each of its fields, and is handed over
    as that dataclass: options that several verbs share are written once.

        @verb("score")
        def score(input: ..., judge: JudgeOptions, as_json: JsonOption = False) -> None:
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}

        @wraps(function)
        def called(**given: Any) -> None:
            for name, kind in groups.items():
                given[name] = kind(**{each.name: given.pop(each.name) for each in fields(kind)})
            function(**given)

        flat = list(_flat(function, hints))
        called.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in flat}
        app.command(name, cls=_Verb)(called)
        return function

    return register


def _flat(function: Callable[..., None], hints: dict[str, Any]) -> Iterator[inspect.Parameter]:
    for parameter in inspect.signature(function).parameters.values():
        hint = hints[parameter.name]
        if not is_dataclass(hint):
            yield parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY)
            continue
        own = get_type_hints(hint, include_extras=True)
        for each in fields(hint):
            default = each.default if each.default_factory is MISSING else each.default_factory()
            yield inspect.Parameter(
                each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=own[each.name]
            )


def choice(*names: str, of: Iterable[str] | Callable[[], Iterable[str]], help: str, commas: bool = False) -> Any:
    """An option that takes one of a few values, which its help lists; where it may come again, each time one of them.

    With `commas`, several may stand in one text, with commas between them.
    `of` is a function where the values stand in a module that is slow to import.
    """

    def check(given: str | list[str] | None) -> str | list[str] | None:
        values = [given] if isinstance(given, str) else given or ()
        for value in (each.strip() for part in values for each in (part.split(",") if commas else [part])):
            allowed = list(of() if callable(of) else of)
            if value not in allowed:
                raise typer.BadParameter(f"{value!r} is not one of {', '.join(allowed)}")
        return given

    if not callable(of):
        return typer.Option(*names, help=help, metavar="|".join(of), callback=check, parser=str)
    _allowed_later[of.__name__] = of
    return typer.Option(*names, help=help, metavar=of.__name__, callback=check, parser=str)


_allowed_later: dict[str, Callable[[], Iterable[str]]] = {}


class _Verb(TyperCommand):
    """A command that takes from `geval.yaml` what is not given; its help looks allowed values up when it is shown."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        several = {each.name or "": bool(getattr(each, "multiple", False)) for each in self.params}
        return list(super().parse_args(ctx, [*settings.arguments(self.name or "", several, given), *args]))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for each in self.params:
            if later := _allowed_later.get(each.metavar or ""):
                each.metavar = "|".join(later())
        super().format_help(ctx, formatter)
