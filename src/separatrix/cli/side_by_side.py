"""Print several verdicts on one construction side by side, one column per mechanism."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from separatrix.cli.terminal import COLOURS, console, escape, group_pairs, new_table, print_lines
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.spelling import for_people, whole_for_people

if TYPE_CHECKING:
    from separatrix.exact.verdicts import RefusedVerdict, Verdict, Verdicts


def view(verdicts: Verdicts) -> None:
    """Print one column per mechanism."""
    from separatrix.constructions.reference import defaults_sentence
    from separatrix.exact.verdicts.several import name_of
    from separatrix.exact.verdicts.theorem import label_groups

    out, first = console(), verdicts.answers[0]
    out.print(f"{first.construction.name} (delta {format_exact(first.delta)})")
    columns = [_column(answer) for answer in verdicts]
    labels = list(dict.fromkeys(label for column in columns for label in column))
    table = new_table("", *(escape(column["mechanism"]) for column in columns))
    for label in labels:
        if label != "mechanism" and any(column.get(label) for column in columns):
            table.add_row(label, *(_cell(column.get(label, "")) for column in columns))
    out.print(table)
    # Sentences are the same for many mechanisms, so each is printed once with all names.
    answers = [(answer.mechanism.spelled, answer) for answer in verdicts.answers]
    remarks = group_pairs((remark, name) for name, answer in answers for remark in answer.remarks)
    theorem = group_pairs((answer.theorem, name) for name, answer in answers if answer.theorem)
    evidence = group_pairs((_evidence(answer), name_of(answer)) for answer in verdicts)
    print_lines((f"{', '.join(names)}: {remark}" for remark, names in remarks.items()), "yellow")
    print_lines(label_groups(theorem))
    print_lines(f"{', '.join(names)}: {sentence}" for sentence, names in evidence.items())
    print_lines([defaults_sentence(first.taken)])


def _column(answer: Verdict | RefusedVerdict) -> dict[str, str]:
    """Return the cells of one mechanism's column by row label."""
    from separatrix.exact.verdicts import RefusedVerdict

    if isinstance(answer, RefusedVerdict):
        return {"mechanism": answer.mechanism, "verdict": "not computed"}
    outcome = answer.outcome
    low, high = outcome.interval
    unit = "" if answer.construction.unit == 1 else ", in sqrt(log n)"
    finite = math.isfinite(outcome.margin)
    return {
        "mechanism": answer.mechanism.spelled,
        "verdict": answer.word,
        "P(tells apart)": for_people(outcome.distinguish),
        "  from": "" if low == high else for_people(low, 4),
        "  to": "" if low == high else for_people(high, 4),
        "P(fires on D0)": for_people(outcome.fire_d0, 4),
        "P(fires on D1)": for_people(outcome.fire_d1, 4),
        f"margin{unit}": for_people(outcome.margin) if finite else "not known",
        "bits": for_people(outcome.bits, 4) if finite else "not known",
        "AUC under that noise": "" if answer.auc is None else for_people(answer.auc),
        **{f"lost in {name} from n": _length(n) for name, n in (answer.formats or {}).items()},
        "engine": outcome.engine,
    }


def _length(n: int | None) -> str:
    from separatrix.exact.verdicts.lost_formats import LARGEST

    return f"none found up to {whole_for_people(LARGEST)}" if n is None else whole_for_people(n)


def _cell(text: str) -> str:
    return f"[bold {COLOURS[text]}]{text}[/]" if text in COLOURS else escape(text)


def _evidence(answer: Verdict | RefusedVerdict) -> str:
    from separatrix.exact.verdicts import RefusedVerdict

    if isinstance(answer, RefusedVerdict):
        return answer.evidence
    return f"{answer.outcome.engine}, {answer.outcome.evidence}"
