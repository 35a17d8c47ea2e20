"""All commands as one application."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from separatrix.cli import (
    assess,
    boundary,
    cards,
    check,
    choose,
    claim,
    data,
    explore,
    learn,
    lists,
    maps,
    prove,
    readers,
    report,
    reproduce,
    results,
    scaling,
    schema,
    search,
    store,
    streams,
    sweep,
    verdict,
    weights,
    worker,
)
from separatrix.core.errors import UsageError

GROUPS: Mapping[str, Mapping[Callable[..., None] | str, str]] = {
    "Understand": {
        verdict.verdict: "Probability that a mechanism tells D0 from D1, at one point.",
        prove.prove: "Prove a verdict for every n, or find the n at which it fails.",
        readers.readers: "Best threshold, best linear reader, best possible reader.",
        weights.weights: "Whether other weights would save linear attention, and the price.",
        check.check: "Verify a certificate independently.",
        reproduce.reproduce: "Reproduce the paper: ledger of claims, figures, one report.",
        claim.claim: "Check one claim of the ledger and show the computed values.",
        explore.explore: "Open the explorer, a web app on this machine.",
        lists.list_: "List mechanisms, constructions, claims, tasks and others.",
    },
    "Compare": {
        maps.map_: "Map a quantity over two parameters.",
        boundary.boundary: "Where a mechanism begins or ceases to distinguish.",
        scaling.scaling: "Scaling law of a quantity: its exponent, if it is a power law.",
        choose.choose: "Which mechanisms answer which question, at which cost.",
        cards.atlas: "Every mechanism on every construction.",
        search.search: "Find inputs that X distinguishes and Y does not.",
    },
    "Measure": {
        assess.assess: "Report card of a mechanism: contract, verdicts, likeness, cost.",
        cards.bench: "Time, memory and operations on this machine.",
    },
    "Train": {
        learn.learn: "Train on a task and compare with proved bounds.",
        "data": "Real data sets: list and fetch them.",
    },
    "Store": {
        sweep.sweep: "Compute the cells of a plan, and store them.",
        worker.worker: "Compute cells for `sweep --scheduler` on another machine.",
        results.results: "Query stored cells, and export them.",
        report.report: "A page about a sweep: curves, maps, mechanisms.",
        report.compare: "Differences between two sweeps.",
        "store": "Check, back up, repair or copy a store.",
        schema.schema: "JSON Schema of the output of --json.",
    },
}
"""Commands by purpose, each with its line in `separatrix --help`; strings name groups of commands."""


class GroupedCommands(TyperGroup):
    """A group whose help lists the commands under the headings of `GROUPS`."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section per heading."""
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(_name(command), line) for command, line in commands.items()])


def _name(command: Callable[..., None] | str) -> str:
    return command if isinstance(command, str) else command.__name__.strip("_")


app = typer.Typer(
    name="separatrix",
    cls=GroupedCommands,
    help="What an attention mechanism can and cannot tell apart, with exact probabilities.",
    rich_markup_mode=None,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in itertools.chain.from_iterable(GROUPS.values()):
    if not isinstance(command, str):
        extra = {"allow_extra_args": command is cards.atlas}
        app.command(_name(command), context_settings=extra)(command)
app.add_typer(store.commands, name="store")
app.add_typer(data.commands, name="data")


@app.callback(invoke_without_command=True)
def version(
    context: typer.Context,
    show: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version and stop.")] = False,
) -> None:
    """What an attention mechanism can and cannot tell apart."""
    if show:
        from separatrix import __version__

        typer.echo(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


CLICK_ERROR: Any = typer.BadParameter.__bases__[0]
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
    except typer.Exit as exit_:
        return exit_.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except CLICK_ERROR as error:
        raise UsageError(error.format_message()) from None
    finally:
        streams.restore_stdout()
    return 0
