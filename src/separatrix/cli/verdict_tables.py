"""Print one verdict, or several on one construction side by side."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from separatrix.cli.terminal import COLOURS, console, escape, new_table, print_lines
from separatrix.core.grouping import group_pairs
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.spelling import for_people, whole_for_people

if TYPE_CHECKING:
    from separatrix.exact.verdicts import Verdict, Verdicts

NOT_FINITE = "not known: the scores overflow float64, or lose their digits"


def print_verdict(verdict: Verdict) -> None:
    """Print one verdict."""
    from separatrix.constructions.reference import format_defaults_sentence

    out, outcome = console(), verdict.outcome
    name = f"{verdict.mechanism.spelled} on {verdict.construction.name}"
    out.print(f"{name}: {_colour(verdict.word)} (delta {format_exact(verdict.delta)})")
    neuron = f"{for_people(float(outcome.p0))}, {for_people(float(outcome.p1))}"
    more = {"one neuron: p0, p1": neuron, "engine": f"{outcome.engine}: {outcome.evidence}"}
    out.print(new_table(rows=(_cells(verdict, digits=10) | more).items()))
    print_lines(verdict.remarks, "yellow")
    print_lines([verdict.theorem, format_defaults_sentence(verdict.taken)])


def print_verdicts(verdicts: Verdicts) -> None:
    """Print a column for each mechanism, and each sentence once."""
    from separatrix.constructions.reference import format_defaults_sentence
    from separatrix.exact.verdicts import Verdict
    from separatrix.exact.verdicts.several import name_of
    from separatrix.exact.verdicts.theorem import label_groups

    out, answers = console(), verdicts.answers
    out.print(f"{answers[0].construction.name} (delta {format_exact(answers[0].delta)})")
    columns = [_cells(answer) if isinstance(answer, Verdict) else {} for answer in verdicts]
    words = [_colour(answer.word) if isinstance(answer, Verdict) else "not computed" for answer in verdicts]
    table = new_table("", *(escape(name_of(answer)) for answer in verdicts), rows=[["verdict", *words]])
    for label in dict.fromkeys(label for column in columns for label in column):
        table.add_row(label, *(column.get(label, "") for column in columns))
    out.print(table)
    remarks = group_pairs((remark, answer.mechanism.spelled) for answer in answers for remark in answer.remarks)
    theorem = group_pairs((answer.theorem, answer.mechanism.spelled) for answer in answers if answer.theorem)
    evidence = group_pairs(
        (f"{x.outcome.engine}, {x.outcome.evidence}" if isinstance(x, Verdict) else x.evidence, name_of(x))
        for x in verdicts
    )
    print_lines((f"{', '.join(names)}: {remark}" for remark, names in remarks.items()), "yellow")
    print_lines(label_groups(theorem))
    print_lines(f"{', '.join(names)}: {sentence}" for sentence, names in evidence.items())
    print_lines([format_defaults_sentence(answers[0].taken)])


def _colour(word: str) -> str:
    return f"[bold {COLOURS[word]}]{word}[/]"


def _cells(verdict: Verdict, digits: int = 6) -> dict[str, str]:
    """Return the numbers of a verdict by the label of their row."""
    outcome = verdict.outcome
    low, high = outcome.interval
    # Sampled probabilities have an interval; those of the exact engines are a single number.
    interval = "" if low == high else f"  in {escape(f'[{for_people(low, 4)}, {for_people(high, 4)}]')}"
    unit = "" if verdict.construction.unit == 1 else ", in sqrt(log n)"
    is_finite = math.isfinite(outcome.margin)
    cells = {
        "P(tells apart)": f"{for_people(outcome.distinguish, digits)}{interval}",
        "P(fires on D0)": for_people(outcome.fire_d0, 4),
        "P(fires on D1)": for_people(outcome.fire_d1, 4),
        f"margin{unit}": for_people(outcome.margin) if is_finite else NOT_FINITE,
        "bits": for_people(outcome.bits, 4) if is_finite else NOT_FINITE,
    }
    if verdict.auc is not None:
        cells["AUC under that noise"] = f"{verdict.auc:.6g}" if math.isfinite(verdict.auc) else NOT_FINITE
    return cells | {f"lost in {name} from n": _describe_length(n) for name, n in (verdict.formats or {}).items()}


def _describe_length(n: int | None) -> str:
    from separatrix.exact.verdicts.lost_formats import LARGEST

    return f"none found up to {whole_for_people(LARGEST)}" if n is None else whole_for_people(n)
