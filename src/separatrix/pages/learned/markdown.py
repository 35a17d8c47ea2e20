"""Trained evidence as tables in Markdown, for documentation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from separatrix.analysis.evidence.training_result import MechanismEvidence, ReportPart, TrainingResult
from separatrix.pages.learned import texts

HEAD = ("task", "mechanism", "median", "seeds", "rate", "weights", "state, bytes", "best floor", "beside it")


def evidence_table(parts: Sequence[ReportPart], command: str) -> str:
    """Return a table over all parts with the floor beside every result, and the conclusions of each task."""
    results = [result for part in parts for result in part.results]
    lines = [table_line(HEAD), table_line("---" for _ in HEAD)]
    lines += [table_line(_row(result, evidence)) for result in results for evidence in result.mechanisms]
    return "\n".join([f"`{command}`", "", *lines, "", *map(_conclude, results), ""])


def _row(result: TrainingResult, evidence: MechanismEvidence) -> tuple[str, ...]:
    failures = f", {len(evidence.failed)} failed" if evidence.failed else ""
    numbers = dict(zip(texts.HEAD, texts.evidence_row(evidence), strict=True))
    sizes = (numbers[name] for name in ("rate", "weights", "state, bytes"))
    seeds, beside = f"{texts.seeds_text(evidence.trained)}{failures}", result.beside_floor[evidence.mechanism].value
    floor = f"{result.floor:.4f}: {result.floor_by}"
    return _task(result), f"`{evidence.mechanism}`", numbers["trained"], seeds, *sizes, floor, beside


def _conclude(result: TrainingResult) -> str:
    answers = result.task.metric
    score = answers.value if answers.sign > 0 else f"{answers.value}; less is better"
    return f"- **{_task(result)}** ({score}): {'; '.join(result.conclusions)}."


def _task(result: TrainingResult) -> str:
    return f"{result.task.spelling}, {result.setting.steps:,} steps"


def table_line(cells: Iterable[str]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
