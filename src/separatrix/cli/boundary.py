"""`boundary`: the parameter values at which a mechanism begins or ceases to tell the labels apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from separatrix.cli import options
from separatrix.cli.progress import announced, counting
from separatrix.cli.terminal import WRITTEN, console, escape, escape_all, new_table, print_lines, show
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.spelling import for_people

if TYPE_CHECKING:
    from separatrix.analysis.maps import Boundary, BoundaryCurve
    from separatrix.analysis.maps.boundary_result import LevelReading


def boundary(
    construction: options.ConstructionName,
    mechanism: options.MechanismName,
    words: options.AxisWords = None,
    at: Annotated[str, Option(help="Level of P(tells apart).")] = "0.5",
    over: Annotated[str | None, Option(help="A second parameter, name=start:stop:count[:log]: gives a curve.")] = None,
    engine: options.EngineName = "auto",
    scan: Annotated[int | None, Option(help="Number of values that are read first.")] = None,
    tolerance: Annotated[str | None, Option(help="Width of each interval, relative to its ends.")] = None,
    certificate: Annotated[Path | None, Option(help="Write a certificate of both ends here.")] = None,
    draws: options.DrawsOption = 400,
    seed: options.SeedOption = 0,
    confidence: options.ConfidenceOption = 0.95,
    out: options.Picture = None,
    as_json: options.AsJson = False,
) -> None:
    """Where a mechanism begins or ceases to tell the labels apart.

    One parameter is a range, start:stop. It is scanned for values at which P(tells apart) passes a level, and
    each of these is narrowed down. Missing parameters are taken from the construction's reference point.

    \b
    Examples:
      separatrix boundary spike softmax a1=0.5:1.5 n=1e6
      separatrix boundary spike softmax a1=0.5:1.5 --over n=1e3:1e9:7:log
    """
    from separatrix.analysis.maps import Boundary
    from separatrix.analysis.maps import boundary as run
    from separatrix.analysis.maps.boundary import certify_boundary
    from separatrix.core.parameters import UsageError
    from separatrix.exact.engines import Sampling, engine_named
    from separatrix.exact.verdicts import write_certificate

    construction, mechanism, parameters = options.read_question(boundary, construction, mechanism, words)
    if out is not None and over is None:
        raise UsageError("--out draws a curve over a second parameter; add --over n=1e3:1e12:10:log, or use --json")
    options.require_output(out, "boundary_curve")
    if certificate is not None:
        if over is not None or not engine_named(engine).covers("certified"):
            reason = "a curve has none" if over is not None else f"the {engine} engine proves nothing"
            raise UsageError(f"--certificate is for one boundary by the certified engine; {reason}")
        from separatrix.core.files.writing import require_writable

        require_writable(certificate)
    task = "a boundary for each value of --over" if over else "P across the range, then at crossings"
    with announced("boundary", f"{task}; seconds to minutes", as_json), counting(as_json) as tell:
        result: Boundary | BoundaryCurve = run(
            construction,
            mechanism,
            parameters,
            over=over,
            probability=at,
            engine="certified" if certificate is not None else engine,
            scan=scan,
            tolerance=tolerance,
            sampling=Sampling(draws, seed, confidence),
            tell=tell,
        )
        if certificate is not None and isinstance(result, Boundary):
            write_certificate(certificate, certify_boundary(result))
    if isinstance(result, Boundary):
        show(result, as_json, lambda: _print_boundary(result, certificate))
    else:
        show(result, as_json, lambda: _print_curve(result), out)


def _print_boundary(boundary: Boundary, certificate: Path | None) -> None:
    """Print every crossing and plateau, P at both ends of the range, and the evidence."""
    terminal, name, level = console(), boundary.parameter, format_exact(boundary.at)
    heading = escape(f"{boundary.question.label} on {boundary.question.construction}")
    if not boundary.crossings and not boundary.plateaus:
        span = escape(boundary.span.spelled)
        terminal.print(f"{heading}: [bold]no crossing[/] of P = {level} found in {span}")
    for crossing in boundary.crossings:
        verb = "rises" if crossing.rises else "falls"
        ends = f"between [bold]{crossing.lo.value}[/] and [bold]{crossing.hi.value}[/]"
        place = f"{name} {ends}" if boundary.span.whole else boundary.place(crossing)
        proof = _proof(crossing.is_certified)
        terminal.print(f"{heading}: P {verb} through {level} at {place} ({proof})")
        for label, end in (("lo", crossing.lo), ("hi", crossing.hi)):
            terminal.print(f"  {label}  {_place(boundary, end)}  P = {for_people(end.p)}", markup=False)
    for plateau in boundary.plateaus:
        proof = _proof(plateau.is_certified)
        terminal.print(f"{heading}: {plateau.describe(name, level)} ({proof})")
    lines = [f"P = {for_people(end.p)} at {_place(boundary, end)}" for end in boundary.ends]
    if boundary.analytic is not None:
        roots = ", ".join(f"{root:.10g}" for root in boundary.analytic_values)
        place = f"{name} = {roots}" if roots else f"nowhere in this range of {name}"
        formula = boundary.analytic.formula
        lines.append(f"{formula.formula} {formula.tag}, {formula.limit}: {place}")
    if boundary.error_term is not None:
        lines.append(boundary.error_term.statement)
    lines += [f"{boundary.engine}: {boundary.evidence}", boundary.guarantee]
    lines += [boundary.question.reference_remark, boundary.length_remark]
    if certificate is not None:
        lines.append(f"{WRITTEN} {certificate}")
    print_lines(lines)


def _proof(is_certified: bool) -> str:
    return "[green]certified[/]" if is_certified else "not certified"


def _place(boundary: Boundary, end: LevelReading) -> str:
    """Return the parameter's value at an end, and n if it differs between ends."""
    place = f"{boundary.parameter}={format_exact(end.value)}"
    return f"{place} n={end.n}" if boundary.parameter != "n" and len(boundary.lengths) > 1 else place


def _print_curve(curve: BoundaryCurve) -> None:
    """Print one row for each crossing."""
    from separatrix.pages.maps import curve as curves

    print_lines([curves.title(curve)])
    console().print(new_table(*escape_all(curves.columns(curve)), rows=map(escape_all, curves.rows(curve)), gap=1))
    print_lines(curves.sentences(curve))
