"""All commands as one application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer
from typer.main import get_command

from separatrix.cli import commands
from separatrix.errors import UsageError

app = typer.Typer(
    name="separatrix",
    help="What an attention mechanism can and cannot tell apart, with exact probabilities.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
commands.register(app)

WRONG: Any = typer.BadParameter.__bases__[0]
"""What typer raises when a command is typed wrongly, wherever this release keeps it."""


def run(words: Sequence[str]) -> int:
    """The exit code of a command; what is wrong with how it was typed is a UsageError."""
    command = get_command(app)
    try:
        with command.make_context("separatrix", list(words)) as context:
            command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except WRONG as error:
        raise UsageError(error.format_message()) from None
    return 0
