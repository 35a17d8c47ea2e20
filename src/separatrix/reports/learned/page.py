"""What was learned, as a page of its own, which opens offline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from separatrix.files.writing import write_whole
from separatrix.numbers.json import json_file
from separatrix.reports import pages
from separatrix.reports.learned import figures

if TYPE_CHECKING:
    from separatrix.evidence.found import Learned, MechanismEvidence, Part
    from separatrix.evidence.predictions import Prediction

ENDINGS = (".html", ".json")
HEAD = ("mechanism", "proved", "witness", "tuned", "trained", "solved", "rate", "weights", "state, bytes")


def page(title: str, parts: Sequence[Part], command: str, more: Sequence[pages.Section] = ()) -> str:
    """The whole page; `command` is what makes it, `more` are sections after the experiments."""
    return pages.page(
        "learned.html.j2",
        title=title,
        command=command,
        sections=[*map(_section, parts), *more],
    )


def _section(part: Part) -> pages.Section:
    moved = figures.against(part) if part.moved is not None and len(part.found) > 1 else b""
    shown = [_shown(each) for each in part.found]
    return pages.section(part.name, part.title, "learned_part.html.j2", part=part, shown=shown, moved=moved)


def _shown(found: Learned) -> dict[str, Any]:
    """What the template shows of an experiment."""
    return {
        "found": found,
        "head": HEAD,
        "rows": [row(each) for each in found.mechanisms],
        "bars": figures.bars(found),
        "curves": figures.curves(found)
        if any(run.curve for x in found.mechanisms for run in x.runs)
        else b"",
        "rates": figures.rates(found),
        "unclear": [pair for pair in found.paired if not pair.separated],
    }


def row(each: MechanismEvidence) -> tuple[str, ...]:
    """The numbers of a mechanism, as tables on the page and in a terminal show them.

    A ± is half of the 95 % interval of the mean over seeds.
    """
    trained = each.trained
    mean = "–" if trained is None else f"{trained.mean:.4f}"
    if trained is not None and trained.interval is not None:
        mean += f" ±{trained.interval[1] - trained.mean:.4f}"
    return (
        each.mechanism,
        score(None if each.proved is None else each.proved.score),
        score(each.witness),
        score(each.tuned),
        mean,
        f"{each.solved.count} of {each.solved.of}",
        f"{float(each.rate):g}",
        "–" if each.parameters is None else f"{each.parameters:,}",
        "–" if each.state_bytes is None else f"{each.state_bytes:,}",
    )


def score(found: float | None) -> str:
    """A score, or a dash where there is none."""
    return "–" if found is None else f"{found:.4f}"


def ledger(found: Sequence[Prediction]) -> list[pages.Section]:
    """What the exact side said, against what was trained."""
    if not found:
        return []
    rows = [(each.name, each.what, str(len(each.pairs)), _correlation(each)) for each in found]
    misses = [(each.name, line) for each in found for line in each.misses]
    title = "What the exact side predicts"
    return [pages.section("predictions", title, "learned_ledger.html.j2", rows=rows, misses=misses)]


def _correlation(found: Prediction) -> str:
    if found.correlation is None or found.interval is None:
        return "too few, or all alike"
    low, high = found.interval
    return f"{found.correlation:.2f} [{low:.2f}, {high:.2f}]"


def write(
    title: str,
    parts: Sequence[Part],
    command: str,
    out: Path,
    as_json: Any,
    more: Sequence[pages.Section] = (),
) -> None:
    """In the form the ending of `out` names."""
    makers: dict[str, Callable[[], bytes]] = {
        ".html": lambda: page(title, parts, command, more).encode(),
        ".json": lambda: json_file(as_json),
    }
    write_whole(out, makers[out.suffix]())
