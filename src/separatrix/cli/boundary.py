"""`boundary`: where a mechanism comes to tell the labels apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.cli.options import (
    AsJson,
    AxisWords,
    ConfidenceOption,
    ConstructionName,
    DrawsOption,
    EngineName,
    MechanismName,
    SeedOption,
    in_order,
    read_parameters,
)
from separatrix.cli.progress import announced, counting, working
from separatrix.cli.terminal import console, escape, new_table, show
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.spelling import for_people

if TYPE_CHECKING:
    from separatrix.analysis.maps import Boundary, BoundaryCurve
    from separatrix.analysis.maps.bisection import LevelReading

WHAT = "P at values across the range, then at crossings; seconds to minutes"
OVER = "P at values of the range, for each of --over; seconds to minutes each"


def boundary(
    construction: ConstructionName,
    mechanism: MechanismName,
    words: AxisWords = None,
    at: Annotated[str, typer.Option(help="The level of P(tells apart) to be passed.")] = "0.5",
    over: Annotated[
        str | None, typer.Option(help="A second parameter, name=start:stop:count[:log]: gives a curve.")
    ] = None,
    engine: EngineName = "auto",
    scan: Annotated[int | None, typer.Option(help="At how many values of the range the scan looks.")] = None,
    tolerance: Annotated[
        str | None, typer.Option(help="How narrow each interval has to be, relative to its ends.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="Write a certificate of both ends here.")] = None,
    draws: DrawsOption = 400,
    seed: SeedOption = 0,
    confidence: ConfidenceOption = 0.95,
    out: Annotated[
        Path | None, typer.Option(help="With --over, write it: .html, .png, .pdf, .svg, .csv or .json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Where a mechanism begins or ceases to tell the labels apart.

    One parameter is a range, start:stop. It is scanned for values where P(tells apart) passes a level, and
    each of these is narrowed down. What is not given is taken from the construction's reference point.

    \b
    Examples:
      separatrix boundary spike softmax a1=0.5:1.5 n=1e6
      separatrix boundary spike softmax a1=0.5:1.5 --over n=1e3:1e9:7:log
    """
    from separatrix.analysis.maps import boundary as run
    from separatrix.analysis.maps import boundary_curve, certify_boundary
    from separatrix.core.files.writing import require_writable
    from separatrix.core.parameters import UsageError
    from separatrix.exact.engines import Sampling, engine_named
    from separatrix.exact.verdicts import write_certificate

    construction, mechanism = in_order(construction, mechanism)
    parameters = read_parameters(boundary, construction, words)
    if out is not None and over is None:
        raise UsageError(
            "--out draws a curve over a second parameter; add --over n=1e3:1e12:10:log, or use --json"
        )
    if certificate is not None and (over is not None or not engine_named(engine).covers("certified")):
        reason = "a curve has none" if over is not None else f"the {engine} engine proves nothing"
        raise UsageError(f"--certificate is for one boundary by the certified engine; {reason}")
    if certificate is not None:
        require_writable(certificate)
    sampling = Sampling(draws, seed, confidence)
    if over is None:
        with announced("boundary", WHAT, as_json), counting(as_json) as count:
            found = run(
                construction,
                mechanism,
                parameters,
                probability=at,
                engine="certified" if certificate is not None else engine,
                scan=scan,
                tolerance=tolerance,
                sampling=sampling,
                tell=count,
            )
            if certificate is not None:
                write_certificate(certificate, certify_boundary(found))
        show(found, as_json, lambda: _view(found, certificate))
        return
    if out is not None:
        from separatrix.pages.maps import CURVE_ENDINGS

        require_writable(out, CURVE_ENDINGS)
    with announced("boundary", OVER, as_json), working(as_json) as tell:
        curve = boundary_curve(
            construction,
            mechanism,
            parameters,
            over,
            at=at,
            engine=engine,
            scan=scan,
            tolerance=tolerance,
            sampling=sampling,
            tell=tell,
        )
    if out is not None:
        from separatrix.pages.maps import write_curve

        write_curve(curve, out)
    show(curve, as_json, lambda: _curve_view(curve, out))


def _view(found: Boundary, certificate: Path | None) -> None:
    """Print every crossing, or P at both ends where there is none."""
    to, name, level = console(), found.span.name, format_exact(found.at)
    where = f"{found.asked.label} on {found.asked.kind.name}"
    start, stop = found.ends
    if not found.crossings and not found.plateaus:
        to.print(
            f"{escape(where)}: [bold]no crossing[/] of P = {level} found in {escape(found.span.spelled)}"
        )
    for crossing in found.crossings:
        word = "[green]certified[/]" if crossing.certified else "not certified"
        direction = "rises" if crossing.rises else "falls"
        between = f"between [bold]{crossing.lo.value}[/] and [bold]{crossing.hi.value}[/]"
        place = f"{name} {between}" if found.span.whole else found.place(crossing)
        to.print(f"{escape(where)}: P {direction} through {level} at {place} ({word})")
        for label, end in (("lo", crossing.lo), ("hi", crossing.hi)):
            to.print(f"  {label}  {_place(found, end)}  P = {for_people(end.p)}", markup=False)
    for plateau in found.plateaus:
        word = "[green]certified[/]" if plateau.certified else "not certified"
        to.print(f"{escape(where)}: {plateau.describe(name, level)} ({word})")
    for end in (start, stop):
        to.print(f"P = {for_people(end.p)} at {_place(found, end)}", markup=False)
    if found.formula is not None:
        roots = ", ".join(f"{root:.10g}" for root in found.expected)
        place = f"{name} = {roots}" if roots else f"nowhere in this range of {name}"
        said = f"{found.formula.formula} {found.formula.tag}, {found.formula.limit}: {place}"
        to.print(said, markup=False)
    to.print(f"{found.engine}: {found.evidence}", markup=False)
    to.print(found.guarantee, markup=False)
    for said in filter(None, (found.asked.reference_remark, found.moved)):
        to.print(said, markup=False)
    if certificate is not None:
        to.print(f"certificate written; verify it with: separatrix check {certificate}", markup=False)


def _place(found: Boundary, end: LevelReading) -> str:
    """The parameter's value at an end, and n where it is not the same at all of them."""
    place = f"{found.span.name}={format_exact(end.value)}"
    follows = found.span.name != "n" and len(found.lengths) > 1
    return f"{place} n={found.n_used(end)}" if follows else place


def _curve_view(found: BoundaryCurve, out: Path | None) -> None:
    """Print one row for each crossing."""
    from separatrix.pages.maps import curve as curves

    to = console()
    to.print(escape(curves.title(found)))
    table = new_table(*map(escape, curves.columns(found)), gap=1)
    for row in curves.rows(found):
        table.add_row(*map(escape, row))
    to.print(table)
    for sentence in curves.sentences(found):
        to.print(escape(sentence))
    if out is not None:
        to.print(f"written: {escape(str(out))}")
