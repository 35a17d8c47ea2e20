"""What was learned, as a page of its own, which opens offline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from separatrix.analysis.evidence.estimates import SeedSummary, describe_resolution
from separatrix.core.files.writing import write_whole
from separatrix.core.numbers.json import json_file
from separatrix.pages import pages
from separatrix.pages.learned import figures, table

if TYPE_CHECKING:
    from separatrix.analysis.evidence.estimates import PairedDifference
    from separatrix.analysis.evidence.predictions import Prediction
    from separatrix.analysis.evidence.training_result import (
        EqualState,
        MechanismEvidence,
        ReportPart,
        TrainingResult,
    )

ENDINGS = (".html", ".json", ".md", ".png")
HEAD = ("mechanism", "proved", "witness", "tuned", "trained", "solved", "rate", "weights", "state, bytes")
SHOWN_SEEDS = 24
"""Up to this many seeds every score is shown."""


def page(title: str, parts: Sequence[ReportPart], command: str, more: Sequence[pages.Section] = ()) -> str:
    """The whole page; `command` is what makes it, `more` are sections after the experiments."""
    look = figures.palette(parts)
    return pages.page(
        "learned.html.j2",
        title=title,
        command=command,
        sections=[*(_section(part, look) for part in parts), *more],
    )


def _section(part: ReportPart, look: figures.Palette) -> pages.Section:
    """A question; figures of the whole come first, each a picture with what it shows in words."""
    several = len(part.results) > 1 and len({each.task.metric for each in part.results}) == 1
    whole = list[tuple[bytes, str]]()
    if several and part.varied is not None:
        what = f"Scores against {part.varied}: every seed, the medians joined, with both ceilings."
        whole.append((figures.against(part, look), what))
    elif several:
        whole.append((figures.overview(part, look), "Medians over seeds with 95 % intervals, side by side."))
    if several and all(each.task.name == "mqar" for each in part.results) and _differ_in_state(part):
        what = "The same at equal state: what stands above one place carries as many bytes for each pair."
        whole.append((figures.states(part, look), what))
    shown = [_shown(each, look) for each in part.results]
    return pages.section(
        part.name,
        part.title,
        "learned_part.html.j2",
        part=part,
        shown=shown,
        whole=whole,
        summary=summary_text,
    )


def _differ_in_state(part: ReportPart) -> bool:
    """Whether key widths differ, so that mechanisms can be compared where they carry the same."""
    return len({each.setting.key_width for each in part.results}) > 1


def _shown(found: TrainingResult, look: figures.Palette) -> dict[str, Any]:
    """What the template shows of an experiment."""
    mechanisms = ",".join(mechanism.mechanism for mechanism in found.mechanisms)
    words = found.label.split()
    return {
        "found": found,
        "command": " ".join(("separatrix learn", words[0], mechanisms, *words[1:], _grid(found))),
        "head": HEAD,
        "rows": [row(mechanism) for mechanism in found.mechanisms],
        "bars": figures.bars(found, look),
        "curves": figures.curves(found, look)
        if any(run.curve for x in found.mechanisms for run in x.runs)
        else b"",
        "rates": figures.rates(found, look),
        "windows": [_window(mechanism) for mechanism in found.mechanisms],
        "tuned": [line for mechanism in found.mechanisms for line in _tuned(mechanism)],
        "seeds": [seeds_text(mechanism.trained) for mechanism in found.mechanisms],
        "paired": [_difference(pair) for pair in found.paired],
        "resolution": describe_resolution(found.paired),
        "equal": None if found.equal_state is None else _equal(found.equal_state),
    }


def _grid(found: TrainingResult) -> str:
    return f"rates={found.setting.rates}"


def _window(each: MechanismEvidence) -> str:
    """What is said of the learning rates of a mechanism."""
    tried = ", ".join(f"{float(rate):g} {score(value)}" for rate, value in each.pilots.items())
    window = ", ".join(f"{float(rate):g}" for rate in each.lr_window)
    taken = f"as good as the best: {window}; taken: {float(each.lr):g}"
    return f"validation score by learning rate: {tried}; {taken}"


def _tuned(each: MechanismEvidence) -> list[str]:
    """Runs from a witness beside those from scratch, where there are several of both."""
    if len(each.tuned_seeds) < 2 or each.trained is None:
        return []
    tuned = SeedSummary(each.tuned_seeds)
    runs = f"{len(each.tuned_seeds)} runs from the witness with noise end at {summary_text(tuned)}"
    return [f"{each.mechanism}: {runs}, {len(each.runs)} from scratch at {summary_text(each.trained)}"]


def _difference(pair: PairedDifference) -> str:
    """How much more one scores than another, with the p-value of the paired test."""
    tested = f"p = {pair.p_value:.2g}, adjusted {pair.p_adjusted:.2g}"
    unclear = "" if pair.is_significant else ": no significant difference"
    return f"{pair.a} − {pair.b}: {pair.difference:+.4f} ({tested}){unclear}"


def summary_text(found: SeedSummary) -> str:
    """The median over seeds, and its 95 % interval where there are six seeds or more.

    >>> summary_text(SeedSummary([0.5, 0.6])), summary_text(SeedSummary([0.1, 1, 1, 1, 1, 1]))
    ('0.5500', '1.0000 [0.1000, 1.0000]')
    """
    ends = "" if found.interval is None else f" [{found.interval[0]:.4f}, {found.interval[1]:.4f}]"
    return f"{found.median:.4f}{ends}"


def seeds_text(found: SeedSummary | None) -> str:
    """The score of every seed from the lowest to the highest; of many seeds, the quartiles.

    >>> seeds_text(SeedSummary([0.5, 0.25]))
    '0.2500 0.5000'
    """
    if found is None:
        return "none"
    ordered = sorted(found.scores)
    if len(ordered) <= SHOWN_SEEDS:
        return " ".join(f"{score:.4f}" for score in ordered)
    last = len(ordered) - 1
    quartiles = (ordered[round(last * share)] for share in (0, 0.25, 0.5, 0.75, 1))
    return f"{len(ordered)} seeds, quartiles " + " ".join(f"{score:.4f}" for score in quartiles)


def row(each: MechanismEvidence) -> tuple[str, ...]:
    """The numbers of a mechanism, as tables on the page and in a terminal show them.

    *trained* is the median over seeds with its 95 % interval; *solved* has the exact interval of the share.
    """
    low, high = each.solved.interval
    return (
        each.mechanism,
        score(None if each.proved is None else each.proved.score),
        score(each.witness),
        score(each.tuned_witness),
        "–" if each.trained is None else summary_text(each.trained),
        f"{each.solved.count} of {each.solved.of} [{low:.2f}, {high:.2f}]",
        f"{float(each.lr):g}",
        "–" if each.parameters is None else f"{each.parameters:,}",
        "–" if each.state_bytes is None else f"{each.state_bytes:,}",
    )


def _equal(found: EqualState) -> dict[str, Any]:
    """What the template shows of the comparison at equal state."""
    paired = [_difference(pair) for pair in found.paired]
    return {"found": found, "head": equal_head(found), "rows": equal_rows(found), "paired": paired}


def equal_head(found: EqualState) -> tuple[str, ...]:
    """The head of the table at equal state; what the reference carries stands in it."""
    return "mechanism", "keys", "state, bytes", f"of {found.state_bytes:,}", "trained", "solved"


def equal_rows(found: EqualState) -> list[tuple[str, ...]]:
    """Of each mechanism the width of its keys, its state beside that of the reference, what it reached."""
    return [
        (
            item.evidence.mechanism,
            f"{item.key_width:,}",
            "–" if item.evidence.state_bytes is None else f"{item.evidence.state_bytes:,}",
            "–" if item.state_ratio is None else f"{item.state_ratio:.2f} x",
            "–" if item.evidence.trained is None else summary_text(item.evidence.trained),
            f"{item.evidence.solved.count} of {item.evidence.solved.of}",
        )
        for item in found.mechanisms
    ]


def score(found: float | None) -> str:
    """A score, or a dash where there is none."""
    return "–" if found is None else f"{found:.4f}"


def ledger(found: Sequence[Prediction]) -> list[pages.Section]:
    """What the exact side said, against what was trained."""
    if not found:
        return []
    rows = [(each.name, each.what, str(len(each.pairs)), _correlation(each)) for each in found]
    misses = [(each.name, line) for each in found for line in each.misses]
    pairs = [
        (each.name, pair.task, pair.mechanism, f"{pair.predicted:.4g}", f"{abs(pair.trained):.4f}")
        for each in found
        for pair in each.pairs
    ]
    title, template = "What the exact side predicts", "learned_ledger.html.j2"
    return [pages.section("predictions", title, template, rows=rows, misses=misses, pairs=pairs)]


def _correlation(found: Prediction) -> str:
    if found.correlation is None:
        return "too few, or all alike"
    if found.interval is None:
        return f"{found.correlation:.2f}, ranks all equal: no interval"
    low, high = found.interval
    return f"{found.correlation:.2f} [{low:.2f}, {high:.2f}]"


def write(
    title: str,
    parts: Sequence[ReportPart],
    command: str,
    out: Path,
    as_json: Any,
    more: Sequence[pages.Section] = (),
    markdown: Callable[[], str] | None = None,
) -> None:
    """Write `out` in the format its suffix names; `markdown` makes the text of .md instead of the parts."""
    makers: dict[str, Callable[[], bytes]] = {
        ".html": lambda: page(title, parts, command, more).encode(),
        ".json": lambda: json_file(as_json),
        ".md": lambda: (table.markdown(parts, command) if markdown is None else markdown()).encode(),
        ".png": lambda: figures.beside_floors(parts),
    }
    write_whole(out, makers[out.suffix]())
