"""`scaling`: how a quantity grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separatrix.cli import completion
from separatrix.cli.options import (
    AsJson,
    AxisWords,
    ConfidenceOption,
    ConstructionName,
    DrawsOption,
    EngineName,
    SeedOption,
    in_order,
    read_parameters,
)
from separatrix.cli.progress import announced, working
from separatrix.cli.terminal import console, escape, new_table, show
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.spelling import for_people

if TYPE_CHECKING:
    from separatrix.analysis.laws import Scalings
    from separatrix.analysis.laws.powerlaw import Law
    from separatrix.analysis.laws.scaling_result import Scaling, ScalingRow
    from separatrix.core.parameters.ranges import Number

WORDS = {True: "power law", False: "not a power law", None: "cannot tell"}
COLOURS = {True: "green", False: "yellow", None: "dim"}
MOST_ROWS = 20


def scaling(
    construction: ConstructionName,
    mechanisms: Annotated[
        str,
        typer.Argument(
            help="One, or for a table several (softmax,linear) or all.", autocompletion=completion.mechanisms
        ),
    ],
    words: AxisWords = None,
    of: Annotated[
        str,
        typer.Option(
            help="margin, bits, miss (1-P), critical_n, lost_bf16 (fp16, fp32, fp64), "
            "seconds, peak_bytes, flops or state_bytes."
        ),
    ] = "margin",
    engine: EngineName = "auto",
    draws: DrawsOption = 400,
    seed: SeedOption = 0,
    confidence: ConfidenceOption = 0.95,
    out: Annotated[
        Path | None, typer.Option(help="Write it: .html, .png, .pdf, .svg, .csv or .json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """How a quantity grows: an exponent, if it is a power law.

    One parameter grows: start:stop:count or start:stop:count:log, with three points or more. What is not
    given is taken from the construction's reference point. Of the quantities, critical_n is the n at which
    P passes 1/2, and lost_fp32 the n from which on D0 and D1 give the same float32.

    \b
    Examples:
      separatrix scaling spike linear n=1e3:1e9:7:log
      separatrix scaling spike all n=1e3:1e6:4:log --of bits
    """
    from separatrix.analysis.laws import Scalings
    from separatrix.analysis.laws import scaling as run
    from separatrix.core.files.writing import require_writable
    from separatrix.exact.engines import Sampling

    construction, mechanisms = in_order(construction, mechanisms)
    parameters = read_parameters(scaling, construction, words)
    sampling = Sampling(draws, seed, confidence)
    if out is not None:
        from separatrix.pages.scaling import ENDINGS

        require_writable(out, ENDINGS)
    what = f"{of} at every value of the range; seconds to minutes"
    with announced("scaling", what, as_json), working(as_json) as tell:
        found: Scaling | Scalings = run(
            construction, mechanisms, parameters, of=of, engine=engine, sampling=sampling, tell=tell
        )
    if isinstance(found, Scalings):
        shown = found.as_json()
        _write(out, shown["rows"], shown, construction, mechanisms, parameters, of)
        show(found, as_json, lambda: _table_view(found))
    else:
        _write(out, [found.as_json()], found.as_json(), construction, mechanisms, parameters, of)
        show(found, as_json, lambda: _view(found))
    if out is not None and not as_json:
        console().print(f"written: {escape(str(out))}")


def _write(
    out: Path | None,
    rows: Sequence[Mapping[str, Any]],
    whole: object,
    construction: str,
    mechanisms: str,
    parameters: Mapping[str, object],
    of: str,
) -> None:
    """Draw what was found into the file; nothing where none was asked for."""
    if out is None:
        return
    from separatrix.core.parameters import UsageError
    from separatrix.pages.scaling import Growth, write

    known = [row for row in rows if row["exponent"] is not None]
    if not known:
        raise UsageError(f"there is nothing to draw: {rows[0]['reason']}")
    without = {row["mechanism"]: row["reason"] for row in rows if row["exponent"] is None}
    words = " ".join(f"{name}={value}" for name, value in parameters.items())
    typed = f"separatrix scaling {construction} {mechanisms} {words} --of {of} --out {out.name}"
    write(Growth(known, without, whole, typed), out)


def _view(found: Scaling) -> None:
    """Print one law, the values behind it, and what is known of it beforehand."""
    from separatrix.analysis.laws.powerlaw import shown

    to, law, name = console(), found.law, found.name
    where = f"{escape(found.asked.label)} on {found.asked.kind.name}"
    to.print(f"{where}: {found.of} against {name}: [bold {COLOURS[law.power_law]}]{WORDS[law.power_law]}[/]")
    low, high = law.interval
    slope = f"slope: {for_people(law.exponent, 4)} in [{for_people(low, 4)}, {for_people(high, 4)}]"
    to.print(slope if law.power_law is False else f"exponent: {law.spelled}", markup=False)
    to.print(f"  {law.interval_is}", style="dim", markup=False)
    to.print(law.reason, markup=False)
    if law.form is not None:
        to.print(f"{law.form.name}: {found.of} ≈ {found.formula}", markup=False)
    if found.closed is not None:
        to.print(f"closed form {found.closed.tag}: {found.closed.formula}", markup=False)
        to.print(f"  in the end {found.closed.limit}", markup=False)
    used = ["n used"] if found.lengths_differ else []
    table = new_table(name, *used, found.of, "local slope")
    slopes = {_between(found, x): shown(slope) for x, slope in law.slopes}
    count = len(found.values)
    for i in sorted({j * (count - 1) // (min(count, MOST_ROWS) - 1) for j in range(min(count, MOST_ROWS))}):
        value = found.values[i]
        length = [str(value.n)] if used else []
        table.add_row(_number(value.x), *length, for_people(value.y), slopes.get(i, ""))
    to.print(table)
    to.print(f"{found.engine}: {found.evidence}", markup=False)
    for said in filter(None, (found.asked.reference_remark, found.remark.strip())):
        to.print(said, markup=False)


def _table_view(found: Scalings) -> None:
    """Print one mechanism a row, and below why some have no exponent."""
    to, rows = console(), found.found
    given = " ".join(f"{name}={value}" for name, value in found.parameters.items())
    to.print(f"[bold]{found.of}[/] on {escape(found.construction)}, {escape(given)}")
    shown = new_table("mechanism", "exponent", "law", f"{found.name} from", "to", "by", gap=1)
    for row in rows:
        if row.scaling is None:
            shown.add_row(escape(row.mechanism), "–", "[dim]not computed[/]")
            continue
        law, values = row.scaling.law, row.scaling.values
        ends = _number(values[0].x), _number(values[-1].x)
        shown.add_row(escape(row.mechanism), law.spelled, _law(law), *ends, row.scaling.engine)
    to.print(shown)
    if any(row.scaling is not None and row.scaling.law.power_law is False for row in rows):
        to.print("in brackets: the local slope at the end, where it is not a power law", style="dim")
    for row in rows:
        if row.scaling is None:
            to.print(f"[yellow]{escape(row.mechanism)}[/]: {escape(row.why)}")
    for remark, names in _remarks(rows).items():
        who = "" if len(names) == len(rows) else f"{', '.join(names)}: "
        to.print(f"{who}{remark}", markup=False)


def _remarks(rows: Sequence[ScalingRow]) -> dict[str, list[str]]:
    """What was moved or left out, and for which mechanisms."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.scaling is not None and row.scaling.remark:
            found.setdefault(row.scaling.remark.strip(), []).append(row.mechanism)
    return found


def _law(law: Law) -> str:
    return f"[{COLOURS[law.power_law]}]{law.name}[/]"


def _between(found: Scaling, x: float) -> int:
    """The place of the value at the upper end of a local slope's step."""
    return next(i for i, value in enumerate(found.values) if float(value.x) > x)


def _number(x: Number) -> str:
    text = format_exact(x)
    return text if len(text) <= 8 else for_people(float(x), 4)
