"""What was learned as tables in Markdown, for documentation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from separatrix.analysis.evidence.training_result import MechanismEvidence, ReportPart, TrainingResult

HEAD = ("task", "mechanism", "median", "seeds", "rate", "weights", "state, bytes", "best floor", "beside it")


def markdown(parts: Sequence[ReportPart], command: str) -> str:
    """A table over all parts, with the floor beside every result, and what may be concluded of each task."""
    found = [each for part in parts for each in part.results]
    lines = [table_line(HEAD), table_line("---" for _ in HEAD)]
    lines += [table_line(_row(each, mechanism)) for each in found for mechanism in each.mechanisms]
    return "\n".join([f"`{command}`", "", *lines, "", *_concluded(found), ""])


def _row(found: TrainingResult, each: MechanismEvidence) -> tuple[str, ...]:
    from separatrix.pages.learned.page import seeds_text, summary_text

    return (
        _asked(found),
        f"`{each.mechanism}`",
        "–" if each.trained is None else summary_text(each.trained),
        seeds_text(each.trained) + (f", {len(each.failed)} failed" if each.failed else ""),
        f"{float(each.lr):g}",
        "–" if each.parameters is None else f"{each.parameters:,}",
        "–" if each.state_bytes is None else f"{each.state_bytes:,}",
        f"{found.floor:.4f}: {found.floor_by}",
        found.beside_floor[each.mechanism].value,
    )


def _concluded(found: Sequence[TrainingResult]) -> list[str]:
    return [f"- **{_asked(each)}** ({_measure(each)}): {'; '.join(each.conclusions)}." for each in found]


def _asked(found: TrainingResult) -> str:
    return f"{found.task.spelling}, {found.setting.steps:,} steps"


def _measure(found: TrainingResult) -> str:
    answers = found.task.metric
    return answers.value if answers.sign > 0 else f"{answers.value}; less is better"


def table_line(cells: Iterable[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
