"""`verdict`: the probability that a mechanism distinguishes the two labels of a construction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.cli import options
from separatrix.cli.progress import announced, drawing
from separatrix.cli.terminal import COLOURS, console, new_table, print_lines, show
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.spelling import for_people, whole_for_people

if TYPE_CHECKING:
    from separatrix.exact.verdicts import Verdict

ENDINGS = (".png", ".svg", ".pdf", ".csv", ".parquet", ".json")
ANNOUNCEMENT = "P(tells apart) at this point; seconds, or minutes where signs are drawn"
NOT_FINITE = "not known: the scores overflow float64, or lose their digits"


def verdict(
    construction: options.ConstructionName,
    mechanisms: options.MechanismNames,
    words: options.Words = None,
    engine: options.EngineName = "auto",
    certificate: Annotated[Path | None, typer.Option(help="Write a certificate of the exact answer here.")] = None,
    delta: options.DeltaOption = "0.01",
    noise: Annotated[
        str | None, typer.Option(help="Also the AUC under Gaussian noise of this sd, in margin units.")
    ] = None,
    draws: options.DrawsOption = 400,
    seed: options.SeedOption = 0,
    confidence: options.ConfidenceOption = 0.95,
    dtype: Annotated[
        str, typer.Option(help="float64, float32, float16 or bfloat16, for dense and grouped.")
    ] = "float64",
    out: Annotated[
        Path | None, typer.Option(help="Write the result: .png, .svg, .pdf, .csv, .parquet or .json.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Does a mechanism tell the two labels of CONSTRUCTION, D0 and D1, apart?

    Parameters that are not given take the values of the construction's reference point. Several mechanisms
    are shown side by side.

    \b
    Examples:
      separatrix verdict spike softmax,linear
      separatrix verdict spike softmax n=1e18 a1=1.1 --certificate proof.json
    """
    from separatrix.cli import side_by_side
    from separatrix.core.files.writing import require_writable
    from separatrix.core.parameters import UsageError, split_mechanisms
    from separatrix.exact.engines import EngineRefusal, Sampling, engine_named
    from separatrix.exact.verdicts import certify, write_certificate
    from separatrix.exact.verdicts.several import compute_several
    from separatrix.exact.verdicts.verdict import parse_request

    construction, mechanisms, parameters = options.read_question(verdict, construction, mechanisms, words)
    names = split_mechanisms(mechanisms) or [mechanisms]
    sampling = Sampling(draws, seed, confidence, dtype)
    if certificate is not None:
        if not engine_named(engine).covers("certified"):
            raise UsageError(f"only the certified engine writes certificates; leave out --engine {engine}")
        if len(names) > 1:
            raise UsageError(f"a certificate is of one mechanism, not of {len(names)}; ask for each by itself")
        engine = "certified"
        require_writable(certificate)
    engine_named(engine).refuse_unused(sampling)
    if out is not None:
        require_writable(out, ENDINGS)
    # Everything is parsed before anything is computed, so that errors appear at once.
    requests = [parse_request(construction, name, parameters, engine, delta, noise) for name in names]
    with announced("verdict", ANNOUNCEMENT, as_json), drawing(as_json) as progress:
        sampling = replace(sampling, told=progress)
        if len(requests) > 1:
            verdicts = compute_several(requests, sampling)
            show(verdicts, as_json, lambda: side_by_side.view(verdicts), out)
            return
        result = requests[0].compute(sampling)
        if certificate is not None:
            try:
                document = certify(result.construction, result.mechanism, result.delta)[1]
            except EngineRefusal as refusal:
                raise UsageError(f"{refusal.reason}; leave out --certificate") from None
            write_certificate(certificate, document)
    show(result, as_json, lambda: view(result), out)
    if certificate is not None and not as_json:
        typer.echo(f"certificate written; verify it with: separatrix check {certificate}")


def view(result: Verdict) -> None:
    """Print a verdict."""
    from separatrix.constructions.reference import defaults_sentence

    out, outcome, word = console(), result.outcome, result.word
    out.print(
        f"{result.mechanism.spelled} on {result.construction.name}: [bold {COLOURS[word]}]{word}[/] "
        f"(delta {format_exact(result.delta)})"
    )
    low, high = outcome.interval
    # Sampled probabilities have an interval; those of the exact engines are a single number.
    interval = "" if low == high else f"  in [{for_people(low, 4)}, {for_people(high, 4)}]"
    unit = "" if result.construction.unit == 1 else " (margin in sqrt(log n))"
    rows = {
        "P(tells apart)": f"{for_people(outcome.distinguish, 10)}{interval}",
        "P(fires on D0), P(fires on D1)": f"{for_people(outcome.fire_d0)}, {for_people(outcome.fire_d1)}",
        "one neuron: p0, p1": f"{for_people(float(outcome.p0))}, {for_people(float(outcome.p1))}",
        f"margin, bits{unit}": f"{for_people(outcome.margin)}, {for_people(outcome.bits, 4)}"
        if math.isfinite(outcome.margin)
        else NOT_FINITE,
    }
    if result.auc is not None:
        rows["AUC under that noise"] = f"{result.auc:.6g}" if math.isfinite(result.auc) else NOT_FINITE
    if result.formats is not None:
        rows["lost in number formats from n ="] = _format_lost(result.formats)
    rows["engine"] = f"{outcome.engine}: {outcome.evidence}"
    out.print(new_table(rows=rows.items()))
    print_lines(result.remarks, "yellow")
    print_lines([result.theorem, defaults_sentence(result.taken)])


def _format_lost(formats: Mapping[str, int | None]) -> str:
    """Format the n from which each number format loses the difference, formats without such an n last."""
    from separatrix.exact.verdicts.lost_formats import LARGEST

    limits = [f"{name} {whole_for_people(n)}" for name, n in formats.items() if n is not None]
    unlimited_names = [name for name, n in formats.items() if n is None]
    if not unlimited_names:
        return ", ".join(limits)
    no_limit = f"none found up to {whole_for_people(LARGEST)}"
    return f"{', '.join(limits)}; {', '.join(unlimited_names)}: {no_limit}" if limits else no_limit
