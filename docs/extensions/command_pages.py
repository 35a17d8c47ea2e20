"""The reference of commands, generated from the parser."""

from __future__ import annotations

import re
from typing import Any

from typer.main import get_command

from separatrix.cli.application import app


def commands() -> str:
    """Return a section for each command in the order of `separatrix --help`, with its subcommands."""
    top_level = get_command(app).commands
    return "\n".join(_command(f"separatrix {name}", command) for name, command in top_level.items())


def _command(path: str, command: Any, level: int = 2) -> str:
    context = command.make_context(path, [], resilient_parsing=True)
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    about, examples = _split(command.help or "")
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    rows = [record for record in records if record is not None and not record[0].endswith("--help")]
    parts = [f"{'#' * level} {path}", about, f"```text\n{usage}\n```"]
    if rows:
        parts += ["| | |\n|---|---|\n" + "\n".join(f"| `{name}` | {_cell(text)} |" for name, text in rows)]
    if examples:
        parts += ["```console\n" + "\n".join(f"$ {example}" for example in examples) + "\n```"]
    subcommands = getattr(command, "commands", {})
    parts += [_command(f"{path} {name}", subcommand, level + 1) for name, subcommand in subcommands.items()]
    return "\n\n".join(parts) + "\n"


def _split(text: str) -> tuple[str, list[str]]:
    """Split a help text into its description and its examples."""
    about, _, after = re.sub("^\b\n", "", text, flags=re.MULTILINE).partition("Example")
    is_list = after.startswith("s:")  # "Examples:" has one per line, "Example:" is one command
    after = after.partition(":")[2]
    examples = after.strip().splitlines() if is_list else [" ".join(after.split())]
    return _plain(about.strip()), [example.strip() for example in examples if example.strip()]


def _plain(text: str) -> str:
    return re.sub(r"([<*|])", r"\\\1", text)


def _cell(text: str) -> str:
    line = " ".join(_plain(text).split())
    return re.sub(r"\s*\[(required|default: .*|x.*)\]$", r" *(\1)*", line).replace("(default: (", "(default: ")
