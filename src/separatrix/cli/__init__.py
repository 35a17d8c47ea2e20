"""The command line. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import sys
from typing import Any

import typer

from separatrix.cli import commands
from separatrix.parameters.errors import SeparatrixError
from separatrix.parameters.secrets import without_passwords

app = typer.Typer(
    name="separatrix",
    help="What an attention mechanism can and cannot tell apart, with exact probabilities.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
commands.register(app)


USAGE_ERROR: Any = typer.BadParameter.__bases__[0]
"""click's own error, wherever this release of typer keeps it."""


def main() -> None:
    """Run, and turn every foreseen error into one line on stderr and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except SeparatrixError as error:
        code = _complain(*error.lines)
    except USAGE_ERROR as error:
        code = _complain(error.format_message())
    except (typer.Abort, KeyboardInterrupt):
        print("separatrix: interrupted", file=sys.stderr)
        code = 130
    except (ArithmeticError, MemoryError, ValueError) as error:
        what = str(error) or "no more is known"
        code = _complain(f"{type(error).__name__}: {what}. This should not happen: please report the command")
    except OSError as error:
        code = _complain(f"{error.filename or 'a file'}: {error.strerror or error}")
    sys.exit(code)


def _complain(*messages: str) -> int:
    for message in messages:
        print(f"separatrix: {' '.join(without_passwords(message).split())}", file=sys.stderr)
    return 2
