"""`verdict`: does a mechanism tell the two labels of a construction apart?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.cli.options import (
    AsJson,
    ConfidenceOption,
    ConstructionName,
    DeltaOption,
    DrawsOption,
    EngineName,
    MechanismName,
    SeedOption,
    Words,
    read_parameters,
)
from separatrix.cli.terminal import COLOURS, console, new_table, show
from separatrix.numbers import format_exact

if TYPE_CHECKING:
    from separatrix.engines import Outcome
    from separatrix.verdicts import Verdict

NOT_FINITE = "not known: the scores overflow float64, or lose their digits"


def verdict(
    construction: ConstructionName,
    mechanism: MechanismName,
    words: Words = None,
    engine: EngineName = "auto",
    certificate: Annotated[
        Path | None, typer.Option(help="Write a certificate of the exact answer here.")
    ] = None,
    delta: DeltaOption = "0.01",
    noise: Annotated[
        str | None,
        typer.Option(help="Add the AUC under Gaussian noise of this sd, in the unit of the margin."),
    ] = None,
    draws: DrawsOption = 400,
    seed: SeedOption = 0,
    confidence: ConfidenceOption = 0.95,
    dtype: Annotated[
        str, typer.Option(help="float64, float32, float16 or bfloat16, for dense and grouped.")
    ] = "float64",
    as_json: AsJson = False,
) -> None:
    """Does MECHANISM tell the two labels of CONSTRUCTION apart?

    Example: separatrix verdict spike softmax n=1000 d=102 m=12 a0=0.01 a1=1.2 b=0.2 c=0.1
    """
    from separatrix.engines import EngineRefusal, Sampling, engine_named
    from separatrix.files.writing import require_writable
    from separatrix.parameters import UsageError
    from separatrix.verdicts import certify, write_certificate
    from separatrix.verdicts import verdict as run

    parameters = read_parameters(verdict, construction, words)
    sampling = Sampling(draws, seed, confidence, dtype)
    engine_named("certified" if certificate is not None else engine).refuse_unused(sampling)
    if certificate is not None and not engine_named(engine).covers("certified"):
        raise UsageError(f"only the certified engine writes certificates; leave out --engine {engine}")
    if certificate is not None:
        require_writable(certificate)
    found = run(
        construction,
        mechanism,
        parameters,
        engine="certified" if certificate is not None else engine,
        delta=delta,
        noise_sd=noise,
        sampling=sampling,
    )
    if certificate is not None:
        try:
            write_certificate(certificate, certify(found.construction, found.mechanism, found.delta)[1])
        except EngineRefusal as refused:
            raise UsageError(f"{refused.reason}; leave out --certificate") from None
    show(found, as_json, lambda: view(found))
    if certificate is not None and not as_json:
        typer.echo(f"certificate written; verify it with: separatrix check {certificate}")


def view(found: Verdict) -> None:
    """Print a verdict."""
    out, outcome, word = console(), found.outcome, found.word
    out.print(
        f"{found.mechanism.spelled} on {found.construction.name}: [bold {COLOURS[word]}]{word}[/] "
        f"(delta {format_exact(found.delta)})"
    )
    table = new_table()
    low, high = outcome.interval
    interval = "" if low == high else f"  in [{low:.4g}, {high:.4g}]"
    table.add_row("P(tells D0 from D1)", f"{outcome.distinguish:.10g}{interval}")
    table.add_row("P(fires on D0), P(fires on D1)", f"{outcome.fire_d0:.6g}, {outcome.fire_d1:.6g}")
    table.add_row("one neuron: p0, p1", f"{float(outcome.p0):.6g}, {float(outcome.p1):.6g}")
    unit = "" if found.construction.unit == 1 else " (margin in sqrt(log n))"
    table.add_row(f"margin, bits{unit}", _margin(outcome))
    if found.auc is not None:
        table.add_row("AUC under that noise", f"{found.auc:.6g}" if math.isfinite(found.auc) else NOT_FINITE)
    if found.formats is not None:
        blind = ", ".join(f"{name} {_size(n)}" for name, n in found.formats.items())
        table.add_row("number formats blind from n =", blind)
    table.add_row("engine", f"{outcome.engine}: {outcome.evidence}")
    out.print(table)


def _margin(outcome: Outcome) -> str:
    return f"{outcome.margin:.6g}, {outcome.bits:.4g}" if math.isfinite(outcome.margin) else NOT_FINITE


def _size(n: int | None) -> str:
    if n is None:
        return "> 1e40"
    return str(n) if n < 10**6 else f"{n:.3g}"
