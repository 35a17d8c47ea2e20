"""`readers`: compare the fixed reader with the best threshold and the best linear reader."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option, echo

from separatrix.cli import options
from separatrix.cli.progress import announced, working
from separatrix.cli.terminal import console, escape, new_table, print_lines, show
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.spelling import for_people

if TYPE_CHECKING:
    from rich.table import Table

    from separatrix.exact.verdicts import Readers
    from separatrix.exact.verdicts.best_reader import BestReader

WORD_COLOURS = {
    "can": "green",
    "cannot": "red",
    "not with this reader": "yellow",
    "open": "yellow",
    "contradiction": "red",
}
MAX_EXACT_LENGTH = 24
"""Exact numbers of more characters than this are shown rounded; JSON has all digits."""
MAX_SHOWN_WEIGHTS = 8
ANNOUNCEMENT = "the fixed reader, its best threshold, a linear one; seconds to minutes"


def readers(
    construction: options.ConstructionName,
    mechanism: options.MechanismName,
    words: options.Words = None,
    delta: options.DeltaOption = "0.01",
    noise: Annotated[
        str | None,
        Option(
            help="Also compute AUCs, and the accuracy of the best possible reader, with Gaussian noise of this "
            "sd on every output, in margin units."
        ),
    ] = None,
    seed: Annotated[int, Option(help="Seed of the draws, if no exact engine applies.")] = 0,
    certificate: Annotated[
        Path | None, Option(help="If D0 and D1 have equal rows, write a certificate of it here.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare the fixed reader with better readers.

    Shows the fixed reader, the same reader with its best threshold, the best linear reader with its weights,
    and the number formats that lose the difference. `cannot` is proved, for the readers that are named; `can`
    comes with verified weights; `not with this reader` says nothing about other readers. The probe is the
    neuron that margins are measured with: the one whose signs are all +. `best possible` is the
    limit of every reader of one row, or of all rows, that knows the position of the special token.

    \b
    Examples:
      separatrix readers spike linear
      separatrix readers spike linear n=1e6 --noise 0.01
      separatrix readers injectivity linear --certificate equal.json
    """
    from separatrix.core.errors import EngineRefusal, UsageError
    from separatrix.core.files.writing import require_writable
    from separatrix.exact.engines import Sampling
    from separatrix.exact.verdicts import certify_equal_rows, write_certificate
    from separatrix.exact.verdicts import readers as run

    if certificate is not None:
        require_writable(certificate)
    construction, mechanism, parameters = options.read_question(readers, construction, mechanism, words)
    with announced("readers", ANNOUNCEMENT, as_json), working(as_json) as tell:
        sampling = Sampling(seed=seed)
        result = run(construction, mechanism, parameters, delta=delta, noise_sd=noise, sampling=sampling, progress=tell)
        if certificate is not None:
            try:
                write_certificate(certificate, certify_equal_rows(result))
            except EngineRefusal as refusal:
                raise UsageError(f"{refusal.reason}; leave out --certificate") from None
    show(result, as_json, lambda: _view(result))
    if certificate is not None and not as_json:
        echo(f"certificate written; verify it with: separatrix check {certificate}")


def _view(result: Readers) -> None:
    """Print the conclusion, the table of readers and the statements."""
    from separatrix.constructions.reference import format_defaults_sentence

    out, word = console(), result.verdict.word
    name = f"{escape(result.mechanism.spelled)} on {result.construction.name}"
    out.print(f"{name}: [bold {WORD_COLOURS[word]}]{word}[/]")
    out.print(_table(result))
    for statement in result.statements:
        subject = escape(f"{statement.readers}; {statement.evidence}")
        out.print(f"[{WORD_COLOURS[statement.word]}]{statement.word}[/]: {subject}")
    limit = "" if result.every_reader is None else result.every_reader.sentence
    print_lines([result.sentence, limit, format_defaults_sentence(result.fixed.taken)])


def _table(result: Readers) -> Table:
    from separatrix.exact.verdicts.verdict import chance_of

    outcome, threshold, linear = result.fixed.outcome, result.threshold, result.linear
    tau = _number(Fraction(result.construction.parameters.complete_values()["tau"]))
    setting = f"m {result.construction.m}, tau {tau}"
    rows = {
        "fixed reader": f"{chance_of(outcome)}, {result.fixed.word} ({setting}; {outcome.engine})",
        "best threshold": "the signs have too many states to tune it",
        "best linear reader": "none found",
    }
    if threshold is not None:
        chance, engine = chance_of(threshold.outcome), threshold.outcome.engine
        rows["best threshold"] = f"{chance} at tau {_number(threshold.tau)} ({engine})"
    if linear is not None:
        check = "verified" if linear.verified else "not verified"
        rows["best linear reader"] = f"gap {for_people(linear.witness.gap)} for |w| = 1, {check}"
        weights = linear.weights()
        text = ", ".join(f"{span}: {_number(w)}" for span, w in weights[:MAX_SHOWN_WEIGHTS])
        more = f", and {len(weights) - MAX_SHOWN_WEIGHTS} more" if len(weights) > MAX_SHOWN_WEIGHTS else ""
        rows["  weights of features"] = escape(text + more)
        rows["  fires"] = f"on D{linear.witness.fires_on}, above {_number(linear.witness.threshold)}"
    if result.auc is not None:
        best, probe = _format_value(result.auc.best_linear), _format_value(result.auc.probe)
        rows[f"AUC at sd {_format_value(result.auc.noise)}"] = f"best linear reader {best}; probe {probe}"
    if result.every_reader is not None:
        rows |= dict(_limits(result.every_reader))
    rows["outputs differ, in ulps"] = _formats(result, "same")
    # The probe alone can be lost where the whole output is not: it is one number, rounded by itself.
    rows["probe, stored alone"] = _formats(result, "same_probe")
    return new_table(rows=rows.items())


def _limits(best: BestReader) -> Iterator[tuple[str, str]]:
    """Yield the limits of every reader of one row, and of every reader of all rows."""
    from separatrix.exact.verdicts.best_reader import NONE_FOUND

    limits = {"one row": best.one_row} | ({"all rows": best.all_rows} if best.all_rows.rows > 1 else {})
    for name, limit in limits.items():
        text = NONE_FOUND if best.finds_none else f"distance {for_people(limit.distance)}"
        if not best.finds_none and limit.accuracy is not None and limit.total_variation is not None:
            accuracy, variation = for_people(limit.accuracy), for_people(limit.total_variation, 4)
            noise = _format_value(None if best.noise is None else float(best.noise))
            text = f"accuracy {accuracy} at sd {noise} (total variation {variation}); {text}"
        yield f"best possible, {name}", text
        if limit.law is not None:
            yield f"  as n grows, {name}", escape(limit.law.statement)


def _format_value(value: float | None) -> str:
    return "not computed" if value is None else for_people(value)


def _formats(result: Readers, attribute: str) -> str:
    """Return for each number format whether both labels are equal in it, or their distance."""
    words = []
    for name, comparison in result.formats.items():
        is_equal = getattr(comparison, attribute)
        ulps = comparison.ulps if attribute == "same" else None
        distance = "apart" if ulps is None else for_people(ulps, 3)
        words.append(f"{name} {'uncertain' if is_equal is None else 'equal' if is_equal else distance}")
    return ", ".join(words)


def _number(value: Fraction) -> str:
    exact = format_exact(value)
    return exact if len(exact) <= MAX_EXACT_LENGTH else f"about {for_people(float(value), 10)}"
