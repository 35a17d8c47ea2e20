"""Several verdicts on one construction, as columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from separatrix.cli.terminal import COLOURS, console, escape, new_table
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.spelling import for_people, whole_for_people

if TYPE_CHECKING:
    from separatrix.exact.verdicts import Refused, Verdict, Verdicts

GAP = 2


def view(found: Verdicts) -> None:
    """Print mechanisms as columns, in as many tables as the width of the terminal asks for."""
    from separatrix.constructions.reference import defaults_sentence
    from separatrix.exact.verdicts.theorem import label_groups

    out, first = console(), found.answers[0]
    out.print(f"{first.construction.name} (delta {format_exact(first.delta)})")
    columns = [_column(each) for each in found]
    labels = list(dict.fromkeys(label for column in columns for label in column))
    for group in _groups(columns, max(map(len, labels)), out.width):
        table = new_table("", *(escape(column["mechanism"]) for column in group), gap=GAP)
        for label in labels:
            if label != "mechanism" and any(column.get(label) for column in group):
                table.add_row(label, *(_cell(column.get(label, "")) for column in group))
        out.print(table)
    for remark, names in _remarks(found):
        out.print(escape(f"{', '.join(names)}: {remark}"), style="yellow")
    for sentence_on_theorem in label_groups(_theorem_sentences(found)):
        out.print(sentence_on_theorem, markup=False)
    for evidence, names in _evidence(found):
        out.print(f"{', '.join(names)}: {evidence}", markup=False)
    if text := defaults_sentence(first.taken):
        out.print(text, markup=False)


def _column(found: Verdict | Refused) -> dict[str, str]:
    """What is said of one mechanism, by the label of its row."""
    from separatrix.exact.verdicts import Refused

    if isinstance(found, Refused):
        return {"mechanism": found.mechanism, "verdict": "not computed"}
    outcome = found.outcome
    low, high = outcome.interval
    unit = "" if found.construction.unit == 1 else ", in sqrt(log n)"
    finite = math.isfinite(outcome.margin)
    return {
        "mechanism": found.mechanism.spelled,
        "verdict": found.word,
        "P(tells apart)": for_people(outcome.distinguish),
        "  from": "" if low == high else for_people(low, 4),
        "  to": "" if low == high else for_people(high, 4),
        "P(fires on D0)": for_people(outcome.fire_d0, 4),
        "P(fires on D1)": for_people(outcome.fire_d1, 4),
        f"margin{unit}": for_people(outcome.margin) if finite else "not known",
        "bits": for_people(outcome.bits, 4) if finite else "not known",
        "AUC under that noise": "" if found.auc is None else for_people(found.auc),
        **_lost(found.formats),
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
    """Columns that fit beside their labels, one at the least."""
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


def _remarks(found: Verdicts) -> Iterator[tuple[str, list[str]]]:
    """What has to be known to read the answers, each said once."""
    said: dict[str, list[str]] = {}
    for answer in found.answers:
        for remark in answer.remarks:
            said.setdefault(remark, []).append(answer.mechanism.spelled)
    yield from said.items()


def _theorem_sentences(found: Verdicts) -> dict[str, list[str]]:
    """The mechanisms about which the same is said of the theorem, by the sentence."""
    sentences: dict[str, list[str]] = {}
    for verdict in found.answers:
        if verdict.theorem:
            sentences.setdefault(verdict.theorem, []).append(verdict.mechanism.spelled)
    return sentences


def _evidence(found: Verdicts) -> Iterator[tuple[str, list[str]]]:
    """What stands behind the answers, each said once, with the mechanisms it is said of."""
    from separatrix.exact.verdicts import Refused
    from separatrix.exact.verdicts.several import name_of

    said: dict[str, list[str]] = {}
    for each in found:
        why = (
            each.evidence if isinstance(each, Refused) else f"{each.outcome.engine}, {each.outcome.evidence}"
        )
        said.setdefault(why, []).append(name_of(each))
    yield from said.items()
