"""`scaling`: how a quantity grows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from separatrix.cli import completion, options
from separatrix.cli.progress import announced, working
from separatrix.cli.terminal import WRITTEN, console, escape, new_table, print_lines, show
from separatrix.core.grouping import group_pairs
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.spelling import for_people

if TYPE_CHECKING:
    from separatrix.analysis.laws import Scaling, Scalings
    from separatrix.core.parameters.ranges import Number

LAW_COLOURS = {True: "green", False: "yellow", None: "dim"}
MAX_TABLE_ROWS = 20


def scaling(
    construction: options.ConstructionName,
    mechanisms: Annotated[
        str,
        Argument(
            help="One mechanism, or several for a table: softmax,linear or all.", autocompletion=completion.mechanisms
        ),
    ],
    words: options.AxisWords = None,
    of: Annotated[
        str,
        Option(
            help="margin, bits, miss (1-P), critical_n, lost_bf16 (fp16, fp32, fp64), "
            "seconds, peak_bytes, flops or state_bytes."
        ),
    ] = "margin",
    engine: options.EngineName = "auto",
    draws: options.DrawsOption = 400,
    seed: options.SeedOption = 0,
    confidence: options.ConfidenceOption = 0.95,
    out: options.Picture = None,
    certificate: Annotated[Path | None, Option(help="Write a certificate of the proved bounds here.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """How a quantity grows: an exponent, if it is a power law.

    One parameter grows: start:stop:count or start:stop:count:log, with three points or more. Missing
    parameters are taken from the construction's reference point. The quantity critical_n is the n at which
    P passes 1/2, and lost_fp32 the n from which on D0 and D1 give the same float32.

    \b
    Examples:
      separatrix scaling spike linear n=1e3:1e9:7:log
      separatrix scaling spike all n=1e3:1e6:4:log --of bits
    """
    from separatrix.analysis.laws import Scalings, certify_scaling
    from separatrix.analysis.laws import scaling as run
    from separatrix.core.files.writing import require_distinct, require_writable
    from separatrix.exact.engines import Sampling
    from separatrix.exact.verdicts import write_certificate

    construction, mechanisms, parameters = options.read_question(scaling, construction, mechanisms, words)
    sampling = Sampling(draws, seed, confidence)
    options.require_output(out, "scalings")
    if certificate is not None:
        require_writable(certificate, ())
    require_distinct(certificate=certificate, out=out)
    task = f"{of} at every value of the range; seconds to minutes"
    with announced("scaling", task, as_json), working(as_json) as tell:
        result: Scaling | Scalings = run(
            construction, mechanisms, parameters, of=of, engine=engine, sampling=sampling, tell=tell
        )
    if certificate is not None:
        write_certificate(certificate, certify_scaling(result))
    view = (
        (lambda: _print_table(result))
        if isinstance(result, Scalings)
        else (lambda: _print_scaling(result, certificate))
    )
    show(result, as_json, view, out)


def _print_scaling(result: Scaling, certificate: Path | None) -> None:
    """Print one law, the values behind it, and the closed form."""
    from separatrix.analysis.laws.powerlaw import format_slope

    terminal, law, name = console(), result.law, result.parameter
    heading = escape(f"{result.question.label} on {result.question.construction}: {result.quantity}")
    word = {True: "power law", False: "not a power law", None: "cannot tell"}[law.power_law]
    terminal.print(f"{heading} against {name}: [bold {LAW_COLOURS[law.power_law]}]{word}[/]")
    low, high = law.interval
    slope = f"slope: {for_people(law.exponent, 4)} in [{for_people(low, 4)}, {for_people(high, 4)}]"
    terminal.print(slope if law.power_law is False else f"exponent: {law.exponent_text}", markup=False)
    terminal.print(f"  {law.interval_is}", style="dim", markup=False)
    lines = [law.reason]
    if law.form is not None:
        lines.append(f"{law.form.name}: {result.quantity} ≈ {result.formula}")
    if (form := result.closed_form) is not None:
        lines += [f"closed form {form.tag}: {form.formula}", f"  in the limit {form.limit}"]
    if (proved := result.proved) is not None:
        lines += [f"proved {proved.tag}: {proved.statement}", f"  {proved.reason}"]
    print_lines(lines)
    lengths = ["n used"] if result.lengths_differ else []
    table = new_table(name, *lengths, result.quantity, "local slope")
    values = result.values
    # A slope belongs to a step between two values; it is printed in the row of the upper one.
    upper = [next(i for i, value in enumerate(values) if float(value.x) > x) for x, _ in law.slopes]
    slopes = {i: format_slope(slope) for i, (_, slope) in zip(upper, law.slopes, strict=True)}
    steps = min(len(values), MAX_TABLE_ROWS) - 1
    for i in sorted({j * (len(values) - 1) // steps for j in range(steps + 1)}):
        n = [str(values[i].n)] if lengths else []
        table.add_row(_format_value(values[i].x), *n, for_people(values[i].y), slopes.get(i, ""))
    terminal.print(table)
    remarks = (f"{result.engine}: {result.evidence}", result.question.reference_remark, result.remark)
    print_lines(remark.strip() for remark in remarks)
    if certificate is not None:
        print_lines([f"{WRITTEN} {certificate}"])


def _print_table(result: Scalings) -> None:
    """Print one row for each mechanism, and below why some have no exponent."""
    from separatrix.analysis.laws import NoScaling

    terminal = console()
    inputs = " ".join(f"{name}={value}" for name, value in result.parameters.items())
    terminal.print(f"[bold]{result.quantity}[/] on {escape(result.construction)}, {escape(inputs)}")
    table = new_table("mechanism", "exponent", "law", f"{result.parameter} from", "to", "by", gap=1)
    for row in result:
        if row.scaling is None:
            table.add_row(escape(row.mechanism), "–", "[dim]not computed[/]")
            continue
        law, values = row.scaling.law, row.scaling.values
        ends = _format_value(values[0].x), _format_value(values[-1].x)
        word = f"[{LAW_COLOURS[law.power_law]}]{law.name}[/]"
        table.add_row(escape(row.mechanism), law.exponent_text, word, *ends, row.scaling.engine)
    terminal.print(table)
    if any(scaling.law.power_law is False for scaling in result.scalings):
        terminal.print("in brackets: the local slope at the end, where it is not a power law", style="dim")
    for row in result:
        if isinstance(row, NoScaling):
            terminal.print(f"[yellow]{escape(row.mechanism)}[/]: {escape(row.reason)}")
    remarks = group_pairs((row.scaling.remark.strip(), row.mechanism) for row in result if row.scaling)
    for remark, names in remarks.items():
        if remark:
            prefix = "" if len(names) == len(result) else f"{', '.join(names)}: "
            terminal.print(f"{prefix}{remark}", markup=False)


def _format_value(x: Number) -> str:
    text = format_exact(x)
    return text if len(text) <= 8 else for_people(float(x), 4)
