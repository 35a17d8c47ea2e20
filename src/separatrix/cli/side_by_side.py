"""Print several verdicts on one construction side by side, one column per mechanism."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from separatrix.cli.terminal import COLOURS, console, escape, new_table
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.spelling import for_people, whole_for_people

if TYPE_CHECKING:
    from separatrix.exact.verdicts import RefusedVerdict, Verdict, Verdicts

GAP = 2


def view(verdicts: Verdicts) -> None:
    """Print one column per mechanism, split into several tables if the terminal is narrow."""
    from separatrix.constructions.reference import defaults_sentence
    from separatrix.exact.verdicts.theorem import label_groups

    out, first = console(), verdicts.answers[0]
    out.print(f"{first.construction.name} (delta {format_exact(first.delta)})")
    columns = [_column(answer) for answer in verdicts]
    labels = list(dict.fromkeys(label for column in columns for label in column))
    for group in _groups(columns, max(map(len, labels)), out.width):
        table = new_table("", *(escape(column["mechanism"]) for column in group), gap=GAP)
        for label in labels:
            if label != "mechanism" and any(column.get(label) for column in group):
                table.add_row(label, *(_cell(column.get(label, "")) for column in group))
        out.print(table)
    for remark, names in _remarks(verdicts):
        out.print(escape(f"{', '.join(names)}: {remark}"), style="yellow")
    for sentence_on_theorem in label_groups(_theorem_sentences(verdicts)):
        out.print(sentence_on_theorem, markup=False)
    for evidence, names in _evidence(verdicts):
        out.print(f"{', '.join(names)}: {evidence}", markup=False)
    if reference := defaults_sentence(first.taken):
        out.print(reference, markup=False)


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
        **_lost(answer.formats),
        "engine": outcome.engine,
    }


def _lost(formats: Mapping[str, int | None] | None) -> dict[str, str]:
    from separatrix.exact.verdicts.lost_formats import LARGEST

    return {
        f"lost in {name} from n": f"none found up to {whole_for_people(LARGEST)}"
        if n is None
        else whole_for_people(n)
        for name, n in (formats or {}).items()
    }


def _cell(text: str) -> str:
    return f"[bold {COLOURS[text]}]{text}[/]" if text in COLOURS else escape(text)


def _groups(columns: Sequence[dict[str, str]], label: int, width: int) -> Iterator[Sequence[dict[str, str]]]:
    """Split columns into groups that fit next to the row labels; each group has at least one."""
    group: list[dict[str, str]] = []
    used = label
    for column in columns:
        wide = GAP + max(map(len, column.values()))
        if group and used + wide > width:
            yield group
            group, used = [], label
        group.append(column)
        used += wide
    yield group


def _remarks(verdicts: Verdicts) -> Iterator[tuple[str, list[str]]]:
    """Yield each remark once, with the mechanisms it applies to."""
    mechanisms_by_remark: dict[str, list[str]] = {}
    for answer in verdicts.answers:
        for remark in answer.remarks:
            mechanisms_by_remark.setdefault(remark, []).append(answer.mechanism.spelled)
    yield from mechanisms_by_remark.items()


def _theorem_sentences(verdicts: Verdicts) -> dict[str, list[str]]:
    """Group mechanisms by the sentence about the theorem."""
    sentences: dict[str, list[str]] = {}
    for verdict in verdicts.answers:
        if verdict.theorem:
            sentences.setdefault(verdict.theorem, []).append(verdict.mechanism.spelled)
    return sentences


def _evidence(verdicts: Verdicts) -> Iterator[tuple[str, list[str]]]:
    """Yield each description of the evidence once, with the mechanisms it applies to."""
    from separatrix.exact.verdicts import RefusedVerdict
    from separatrix.exact.verdicts.several import name_of

    mechanisms_by_evidence: dict[str, list[str]] = {}
    for answer in verdicts:
        evidence = (
            answer.evidence
            if isinstance(answer, RefusedVerdict)
            else f"{answer.outcome.engine}, {answer.outcome.evidence}"
        )
        mechanisms_by_evidence.setdefault(evidence, []).append(name_of(answer))
    yield from mechanisms_by_evidence.items()
