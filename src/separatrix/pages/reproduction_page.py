"""What report.html of the reproduction shows: one file with everything in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from separatrix.analysis.laws.scaling_result import NoScaling, ScalingRow
from separatrix.claims import SECTIONS, ClaimStatus, Entry, count_statuses
from separatrix.claims.paper.figures import BASE, GROWTH_PARAMETERS
from separatrix.claims.paper.reproduction import FAR, ReproductionData
from separatrix.claims.paper.separations import LINEAR_FAMILY, PaperSeparation, PointAnswer, find_separations
from separatrix.pages import pages
from separatrix.pages.commands import number, spelled, whole_run
from separatrix.pages.drawing import Drawn, saved
from separatrix.pages.illustration import draw

STATUS_CLASS = {ClaimStatus.HOLDS: "holds", ClaimStatus.ONLY_WHERE: "only", ClaimStatus.FAILS: "fails"}
ANSWERS = {
    "Distinguish": ("distinguishes",),
    "Some of the time, or undecided": ("partial", "undecided"),
    "Blind": ("blind",),
    "Saturated": ("saturated",),
}


def render(found: ReproductionData, figures: Sequence[Drawn], images: Mapping[str, bytes]) -> str:
    """The page as text. `images` are the figures as PNG, for paper and for readers without scripts."""
    return pages.page(
        "reproduction.html.j2",
        title=_title(found),
        figures=figures,
        illustration=found.illustration,
        picture=saved(draw(found.illustration), "svg"),
        images=images,
        sections=(separations(found.answers), growth(found.growth)),
        far=number(FAR),
        far_softmax=number(found.far["softmax"].margin, 5),
        far_linear=number(found.far["linear"].margin * FAR, 3),
        facts=_glance(found),
        base=" ".join(f"{name}={spelled(value)}" for name, value in BASE.items()),
        ledger=[*_parts(found.ledger.entries)],
        ledger_said=count_statuses(found.ledger.entries),
        made_by=whole_run("").line,
    )


def _title(found: ReproductionData) -> str:
    """The finding: at the base point, how often each mechanism tells D0 from D1."""
    softmax, linear = (number(found.near[name].distinguish) for name in ("softmax", "linear"))
    return f"Softmax tells D0 from D1 with probability {softmax}, linear attention with {linear}"


def _glance(found: ReproductionData) -> list[tuple[str, ...]]:
    return [
        *(
            (f"P(tells apart), {name}", number(outcome.distinguish, 6), repr(outcome.distinguish))
            for name, outcome in found.near.items()
        ),
        (
            "margin in √(log n), softmax : linear",
            " : ".join(number(outcome.margin) for outcome in found.near.values()),
            " : ".join(repr(outcome.margin) for outcome in found.near.values()),
        ),
        ("statements checked", count_statuses(found.ledger.entries)),
    ]


@dataclass(frozen=True)
class Part:
    """A section of the ledger."""

    title: str
    said: str
    fails: bool
    """Whether something in it fails, so that it is not folded."""
    rows: list[tuple[Any, ...]]


def _parts(entries: Sequence[Entry]) -> Iterator[Part]:
    """The ledger by the sections of the theory, in their order."""
    for section in dict.fromkeys(entry.claim.section for entry in entries):
        own = [entry for entry in entries if entry.claim.section == section]
        fails = any(entry.finding.status is ClaimStatus.FAILS for entry in own)
        title = f"{section}. {SECTIONS.get(section, 'Others')}"
        yield Part(title, count_statuses(own), fails, [_claim(entry) for entry in own])


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
    rows = find_separations(found)
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
        _who(won),
        "reproduction_separations.html.j2",
        "Who beats whom",
        most=max((len(cell) for _, cells in pairs for cell in cells), default=1),
        losers=["", *(f"beats {name}" for name in mechanisms)],
        pairs=pairs,
        columns=["Construction", *ANSWERS],
        answers=answers,
    )


def _who(won: Sequence[PaperSeparation]) -> str:
    places = sorted({row.construction.name for row in won})
    if not places:
        return "Who beats whom: no mechanism of the linear family beats softmax"
    return f"Who beats whom: the linear family beats softmax on {', '.join(places)}"


def growth(rows: Iterable[ScalingRow | NoScaling]) -> pages.Section:
    """How the margin of every mechanism grows with n."""
    words = " ".join(f"{name}={value}" for name, value in GROWTH_PARAMETERS.items())
    return pages.section(
        "scaling",
        _grown(rows),
        "reproduction_growth.html.j2",
        "How the margin grows",
        rows=[(row.mechanism, *_law(row)) for row in rows],
        line=f"separatrix scaling spike all {words} --of margin",
    )


def _grown(rows: Iterable[ScalingRow | NoScaling]) -> str:
    """How many mechanisms keep their margin as n grows."""
    laws = [row.scaling.law.name for row in rows if row.scaling is not None]
    kept = laws.count("constant")
    return f"The margin stays constant as n grows for {kept} of {len(laws)} mechanisms that were fitted"


def _law(row: ScalingRow | NoScaling) -> tuple[str, str, str, str]:
    if isinstance(row, NoScaling):
        return "not computed", row.reason, "", ""
    law, values = row.scaling.law, row.scaling.values
    lengths = f"{number(float(values[0].x))} to {number(float(values[-1].x))}"
    return law.exponent_text.replace("-", "−"), law.name, lengths, row.scaling.engine
