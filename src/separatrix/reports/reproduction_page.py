"""What report.html of the reproduction shows: one file with everything in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from separatrix.claims import ClaimStatus, Entry
from separatrix.laws.scaling_result import ScalingRow
from separatrix.paper.base import BASE
from separatrix.paper.growth import PARAMETERS
from separatrix.paper.reproduction import FAR, Computed
from separatrix.paper.separations import LINEAR_FAMILY, PointAnswer, separated
from separatrix.reports import pages
from separatrix.reports.commands import number, spelled, whole_run
from separatrix.reports.drawing import Drawn

STATUS_CLASS = {ClaimStatus.HOLDS: "holds", ClaimStatus.ONLY_WHERE: "only", ClaimStatus.FAILS: "fails"}
VERBS = {
    ClaimStatus.HOLDS: ("holds", "hold"),
    ClaimStatus.ONLY_WHERE: ("holds with a condition", "hold with a condition"),
    ClaimStatus.FAILS: ("fails", "fail"),
}
ANSWERS = {
    "Distinguish": ("distinguishes",),
    "Some of the time, or undecided": ("partial", "undecided"),
    "Blind": ("blind",),
}


def render(found: Computed, figures: Sequence[Drawn], images: Mapping[str, bytes]) -> str:
    """The page as text. `images` are the figures as PNG, for paper and for readers without scripts."""
    return pages.page(
        "reproduction.html.j2",
        title="What softmax attention tells apart and linear attention does not",
        figures=figures,
        images=images,
        sections=(separations(found.answers), growth(found.growth)),
        far=number(FAR),
        far_softmax=number(found.far["softmax"].margin, 5),
        far_linear=number(found.far["linear"].margin * FAR, 3),
        facts=_glance(found),
        base=" ".join(f"{name}={spelled(value)}" for name, value in BASE.items()),
        ledger=[_claim(entry) for entry in found.ledger.entries],
        made_by=whole_run("").line,
    )


def _glance(found: Computed) -> list[tuple[str, str]]:
    statuses = [entry.finding.status for entry in found.ledger.entries]
    counts = {status: statuses.count(status) for status in ClaimStatus}
    came_out = ", ".join(f"{count} {VERBS[status][count > 1]}" for status, count in counts.items() if count)
    return [
        *(
            (f"P[distinguishes], {name}, at the base point", number(outcome.distinguish, 6))
            for name, outcome in found.near.items()
        ),
        (
            "margin in √(log n), softmax : linear, at the base point",
            " : ".join(number(outcome.margin) for outcome in found.near.values()),
        ),
        ("claims", came_out or "none were run"),
    ]


def _claim(entry: Entry) -> tuple[Any, ...]:
    """A row of the ledger."""
    finding = entry.finding
    held, tried = sum(point.holds for point in finding.points), len(finding.points)
    return (
        entry,
        f"[{entry.claim.provenance}]",
        (STATUS_CLASS[finding.status], finding.status.value),
        finding.where,
        finding.slack,
        str(tried) if held == tried else f"{held} of {tried} hold",
    )


def separations(found: Sequence[PointAnswer]) -> pages.Section:
    """Who beats whom on what, and what stands behind every answer."""
    rows = separated(found)
    won = [row for row in rows if row.winner.mechanism in LINEAR_FAMILY and row.loser.mechanism == "softmax"]
    mechanisms = list(dict.fromkeys(each.mechanism for each in found))
    pairs = [
        (
            winner,
            [
                [row for row in rows if (row.winner.mechanism, row.loser.mechanism) == (winner, loser)]
                for loser in mechanisms
            ],
        )
        for winner in mechanisms
    ]
    answers = [
        (
            name,
            [
                [each for each in found if each.name == name and each.word in words]
                for words in ANSWERS.values()
            ],
        )
        for name in dict.fromkeys(each.name for each in found)
    ]
    return pages.section(
        "separations",
        "Who beats whom",
        "reproduction_separations.html.j2",
        places=", ".join(sorted({row.construction.name for row in won})),
        losers=["", *(f"beats {name}" for name in mechanisms)],
        pairs=pairs,
        columns=["Construction", *ANSWERS],
        answers=answers,
    )


def growth(rows: Sequence[ScalingRow]) -> pages.Section:
    """How the margin of every mechanism grows with n."""
    words = " ".join(f"{name}={value}" for name, value in PARAMETERS.items())
    return pages.section(
        "scaling",
        "How the margin grows with n",
        "reproduction_growth.html.j2",
        rows=[(row.mechanism, *_law(row)) for row in rows],
        line=f"separatrix scaling spike all {words} --of margin",
    )


def _law(row: ScalingRow) -> tuple[str, str, str, str]:
    if row.scaling is None:
        return "–", f"no exponent: {row.why}", "", ""
    law, values = row.scaling.law, row.scaling.values
    lengths = f"{number(float(values[0].x))} to {number(float(values[-1].x))}"
    return law.spelled.replace("-", "−"), law.name, lengths, row.scaling.engine
