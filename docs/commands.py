"""Writes commands.md, the reference of every command, from the command line itself: uv run python docs/commands.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.main import get_command

from geval_adapters.cli.app import app

HEAD = """# Every command

Written by `docs/commands.py` from what `geval COMMAND --help` says. Exit codes: 0 done; 1 items without a rating, or a
missed bar; 2 usage or input; 3 undecided; 4 under way elsewhere; 130 interrupted.
"""

EXAMPLES = {
    "score": "geval score examples/answers.jsonl --criterion helpfulness --criterion fluency --output ratings.jsonl",
    "rank": "geval rank examples/answers.jsonl --criterion helpfulness --select chain --limit 6",
    "meta-eval": "geval meta-eval ratings.jsonl --criterion helpfulness",
    "compare": "geval compare ratings.jsonl ratings.jsonl",
    "prompt": "geval prompt helpfulness examples/answers.jsonl --form analyze_rate",
    "criteria": "geval criteria",
    "read": "geval read examples/replies.jsonl --scale 1-5",
    "tasks": "geval tasks",
}
FIRST = ("score", "rank", "meta-eval", "audit")
"""Other commands follow in the order of the alphabet."""


def page() -> str:
    """The whole page."""
    commands = get_command(app).commands  # type: ignore[attr-defined]
    names = [*(name for name in FIRST if name in commands), *sorted(set(commands) - set(FIRST))]
    return HEAD + "".join(section(name, commands[name]) for name in names)


def section(name: str, command: Any) -> str:
    """One command: what it does, an example that runs, its arguments and options."""
    command.get_help(command.make_context(name, [], resilient_parsing=True))  # fills in values that are looked up late
    told = "\n\n".join(" ".join(part.split()) for part in command.help.split("\n\n"))
    example = f"\n```bash\n{EXAMPLES[name]}\n```\n" if name in EXAMPLES else ""
    rows = [row(parameter) for parameter in command.params if parameter.name != "help"]
    return f"\n## geval {name}\n\n{told}\n{example}\n| | |\n|---|---|\n" + "".join(rows)


def row(parameter: Any) -> str:
    """An argument or option, with what it takes and its default."""
    names = ", ".join(f"`{each}`" for each in (*parameter.opts, *parameter.secondary_opts) if each.startswith("-"))
    label = names or parameter.name.upper()
    values = parameter.metavar if parameter.metavar and "|" in parameter.metavar else ""
    allowed = f" One of {values.replace('|', ', ')}." if values else ""
    default = parameter.default
    plain = isinstance(default, str | int | float) and not isinstance(default, bool)
    ends = f" Default: {default}." if plain and default != "" else ""
    return f"| {label} | {(parameter.help or '').replace('|', chr(92) + '|')}{allowed}{ends} |\n"


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page(), encoding="utf-8")
