"""`readers`: what the fixed reader misses, and what the best one could do."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.cli.options import (
    AsJson,
    ConstructionName,
    DeltaOption,
    MechanismName,
    Words,
    in_order,
    read_parameters,
)
from separatrix.cli.progress import announced, working
from separatrix.cli.terminal import console, escape, new_table, show
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.spelling import for_people

if TYPE_CHECKING:
    from rich.table import Table

    from separatrix.exact.verdicts import Readers

COLOURS = {
    "can": "green",
    "cannot": "red",
    "not with this reader": "yellow",
    "open": "yellow",
    "contradiction": "red",
}
LONGEST = 24
"""Exact numbers of more characters than this are shown rounded; JSON has them whole."""
MOST_WEIGHTS = 8
WHAT = "the fixed reader, its best threshold, a linear one; seconds to minutes"


def readers(
    construction: ConstructionName,
    mechanism: MechanismName,
    words: Words = None,
    delta: DeltaOption = "0.01",
    noise: Annotated[
        str | None,
        typer.Option(help="Also the AUC under Gaussian noise of this sd on every output, in margin units."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draws, where nothing exact applies.")] = 0,
    as_json: AsJson = False,
) -> None:
    """What could a better reader do?

    Shows the fixed reader, the same reader with its best threshold, the best linear reader with its weights,
    and which number formats lose the difference. `cannot` is proved, and says for which readers; `can` comes
    with weights that were verified; `not with this reader` says nothing about other readers. The probe is
    the neuron by which margins are measured: the one whose signs are all +.

    \b
    Examples:
      separatrix readers spike linear
      separatrix readers spike linear n=1e6 --noise 0.01
    """
    from separatrix.exact.engines import Sampling
    from separatrix.exact.verdicts import readers as run

    construction, mechanism = in_order(construction, mechanism)
    parameters = read_parameters(readers, construction, words)
    chance = Sampling(seed=seed)
    with announced("readers", WHAT, as_json), working(as_json) as tell:
        found = run(
            construction, mechanism, parameters, delta=delta, noise_sd=noise, sampling=chance, progress=tell
        )
    show(found, as_json, lambda: _view(found))


def _view(found: Readers) -> None:
    from separatrix.constructions.reference import defaults_sentence

    out, word = console(), found.verdict.word
    name = f"{escape(found.mechanism.spelled)} on {found.construction.name}"
    out.print(f"{name}: [bold {COLOURS[word]}]{word}[/]")
    out.print(_table(found))
    for statement in found.statements:
        subject = escape(f"{statement.readers}; {statement.evidence}")
        out.print(f"[{COLOURS[statement.word]}]{statement.word}[/]: {subject}")
    out.print(escape(found.sentence))
    if text := defaults_sentence(found.fixed.taken):
        out.print(text, markup=False)


def _table(found: Readers) -> Table:
    from separatrix.exact.verdicts.verdict import chance_of

    table = new_table()
    outcome, tuned, linear = found.fixed.outcome, found.threshold, found.linear
    tau = Fraction(found.construction.parameters.filled()["tau"])
    table.add_row(
        "fixed reader",
        f"{chance_of(outcome)}, {found.fixed.word} (m {found.construction.m}, tau {_number(tau)}; "
        f"{outcome.engine})",
    )
    if tuned is None:
        table.add_row("best threshold", "the signs have too many states to tune it")
    else:
        chance = f"{chance_of(tuned.outcome)} at tau {_number(tuned.tau)} ({tuned.outcome.engine})"
        table.add_row("best threshold", chance)
    if linear is None:
        table.add_row("best linear reader", "none found")
    else:
        verified = "verified" if linear.verified else "not verified"
        table.add_row("best linear reader", f"gap {for_people(linear.witness.gap)} for |w| = 1, {verified}")
        weights = linear.weights()
        shown = ", ".join(f"{span}: {_number(w)}" for span, w in weights[:MOST_WEIGHTS])
        more = f", and {len(weights) - MOST_WEIGHTS} more" if len(weights) > MOST_WEIGHTS else ""
        table.add_row("  weights of features", escape(shown + more))
        theta = _number(linear.witness.threshold)
        table.add_row("  fires", f"on D{linear.witness.fires_on}, above {theta}")
    if found.auc is not None:
        best, probe = _known(found.auc.best_linear), _known(found.auc.probe)
        table.add_row(f"AUC at sd {_known(found.auc.noise)}", f"best linear reader {best}; probe {probe}")
    table.add_row("outputs differ, in ulps", _formats(found, "same"))
    table.add_row("probe, stored alone", _formats(found, "same_probe"))
    return table


def _known(value: float | None) -> str:
    return "not computed" if value is None else for_people(value)


def _formats(found: Readers, what: str) -> str:
    """For each number format whether the labels are equal in it, or how far apart."""
    words = []
    for name, kept in found.formats.items():
        same = getattr(kept, what)
        apart = for_people(kept.ulps, 3) if what == "same" and kept.ulps is not None else "apart"
        words.append(f"{name} {'uncertain' if same is None else 'equal' if same else apart}")
    return ", ".join(words)


def _number(value: Fraction) -> str:
    exact = format_exact(value)
    return exact if len(exact) <= LONGEST else f"about {for_people(float(value), 10)}"
