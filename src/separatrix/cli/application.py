"""All commands as one application."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import chain
from typing import Annotated, Any

from typer import Abort, BadParameter, Context, Exit, Option, Typer, echo
from typer.core import TyperGroup
from typer.main import get_command

from separatrix.cli import streams
from separatrix.core.errors import UsageError

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Understand": {
        "verdict": "Probability that a mechanism tells D0 from D1, at one point.",
        "prove": "Prove a verdict for every n, or find the n at which it fails.",
        "readers": "Best threshold, best linear reader, best possible reader.",
        "weights": "Whether other weights would save linear attention, and the price.",
        "check": "Verify a certificate independently.",
        "reproduce": "Reproduce the paper: ledger of claims, figures, one report.",
        "claim": "Check one claim of the ledger and show the computed values.",
        "explore": "Open the explorer, a web app on this machine.",
        "list": "List mechanisms, constructions, claims, tasks and others.",
    },
    "Compare": {
        "map": "Map a quantity over two parameters.",
        "boundary": "Where a mechanism begins or ceases to distinguish.",
        "scaling": "Scaling law of a quantity: its exponent, if it is a power law.",
        "choose": "Which mechanisms answer which question, at which cost.",
        "atlas": "Every mechanism on every construction.",
        "search": "Find inputs that X distinguishes and Y does not.",
    },
    "Measure": {
        "assess": "Report card of a mechanism: contract, verdicts, likeness, cost.",
        "bench": "Time, memory and operations on this machine.",
    },
    "Train": {
        "learn": "Train on a task and compare with proved bounds.",
        "data": "Real data sets: list and fetch them.",
    },
    "Store": {
        "sweep": "Compute the cells of a plan, and store them.",
        "worker": "Compute cells for `sweep --scheduler` on another machine.",
        "results": "Query stored cells, and export them.",
        "report": "A page about a sweep: curves, maps, mechanisms.",
        "compare": "Differences between two sweeps.",
        "store": "Check, back up, repair or copy a store.",
        "schema": "JSON Schema of the output of --json.",
    },
}
"""Commands by purpose, each with its line in `separatrix --help`."""
MODULES = {"atlas": "cards", "bench": "cards", "compare": "report", "list": "lists", "map": "maps"}
"""The modules of commands that are not named like their module."""


class GroupedCommands(TyperGroup):
    """A group whose help lists the commands under the headings of `GROUPS`."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section per heading."""
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl(list(commands.items()))


app = Typer(
    name="separatrix",
    cls=GroupedCommands,
    help="What an attention mechanism can and cannot tell apart, with exact probabilities.",
    rich_markup_mode=None,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name in chain.from_iterable(GROUPS.values()):
    module = import_module(f"separatrix.cli.{MODULES.get(name, name)}")
    if hasattr(module, "commands"):
        app.add_typer(module.commands, name=name)
    else:
        # The functions `list_` and `map_` have an underscore, so as not to hide those of Python.
        function = getattr(module, f"{name}_", None) or getattr(module, name)
        app.command(name, context_settings={"allow_extra_args": name == "atlas"})(function)


@app.callback(invoke_without_command=True)
def version(
    context: Context,
    show: Annotated[bool, Option("--version", is_eager=True, help="Print the version and stop.")] = False,
) -> None:
    """What an attention mechanism can and cannot tell apart."""
    if show:
        from separatrix import __version__

        echo(__version__)
        raise Exit
    if context.invoked_subcommand is None:
        echo(context.get_help())
        raise Exit(2)


CLICK_ERROR: Any = BadParameter.__bases__[0]
"""Base class of typer's errors about wrong input; its module differs between releases."""


COMPLETION_VARIABLE = "_SEPARATRIX_COMPLETE"
"""Environment variable set by a shell that asks for completions."""


def run(words: Sequence[str]) -> int:
    """Run a command and return its exit code; wrong input raises UsageError."""
    command = get_command(app)
    # Only `main` answers a shell that asks for completions, and it exits; other errors are handled below.
    if COMPLETION_VARIABLE in os.environ:
        command.main(list(words), "separatrix", complete_var=COMPLETION_VARIABLE)
    try:
        with command.make_context("separatrix", list(words)) as context:
            command.invoke(context)
    except Exit as exit_:
        return exit_.exit_code
    except Abort:
        raise KeyboardInterrupt from None
    except CLICK_ERROR as error:
        raise UsageError(error.format_message()) from None
    finally:
        streams.restore_stdout()
    return 0
