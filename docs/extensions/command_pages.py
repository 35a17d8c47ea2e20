"""Every command with its arguments and options, as the parser knows them."""

from __future__ import annotations

import re
from typing import Any

from typer.main import get_command

from separatrix.cli.application import app


def commands() -> str:
    """A section for each command, in the order of `separatrix --help`; groups have one for each of theirs."""
    return "\n".join(_command(f"separatrix {name}", each) for name, each in get_command(app).commands.items())


def _command(path: str, command: Any, level: int = 2) -> str:
    context = command.make_context(path, [], resilient_parsing=True)
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    about, examples = _split(command.help or "")
    described = [each.get_help_record(context) for each in command.get_params(context)]
    rows = [record for record in described if record is not None and not record[0].endswith("--help")]
    parts = [f"{'#' * level} {path}", about, f"```text\n{usage}\n```"]
    if rows:
        parts += ["| | |\n|---|---|\n" + "\n".join(f"| `{name}` | {_cell(says)} |" for name, says in rows)]
    if examples:
        parts += ["```console\n" + "\n".join(f"$ {each}" for each in examples) + "\n```"]
    below = getattr(command, "commands", {})
    parts += [_command(f"{path} {name}", each, level + 1) for name, each in below.items()]
    return "\n\n".join(parts) + "\n"


def _split(text: str) -> tuple[str, list[str]]:
    """What a help text says, and its examples."""
    about, _, after = re.sub("^\b\n", "", text, flags=re.MULTILINE).partition("Example")
    one_each = after.startswith("s:")
    after = after.partition(":")[2]
    examples = after.strip().splitlines() if one_each else [" ".join(after.split())]
    return _plain(about.strip()), [each.strip() for each in examples if each.strip()]


def _plain(text: str) -> str:
    return re.sub(r"([<*|])", r"\\\1", text)


def _cell(text: str) -> str:
    said = " ".join(_plain(text).split())
    return re.sub(r"\s*\[(required|default: .*|x.*)\]$", r" *(\1)*", said).replace(
        "(default: (", "(default: "
    )
