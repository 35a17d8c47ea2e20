"""report.html of the reproduction: one file with everything in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from separatrix.analysis.laws.scaling_result import NoScaling, ScalingRow
from separatrix.analysis.weights import Weights
from separatrix.claims import SECTIONS, ClaimStatus, Entry, count_statuses
from separatrix.claims.paper.figures import BASE, GROWTH_PARAMETERS
from separatrix.claims.paper.proofs import ProvedStatements
from separatrix.claims.paper.reproduction import FAR, ReproductionData
from separatrix.claims.paper.separations import LINEAR_FAMILY, PaperSeparation, PointAnswer, find_separations
from separatrix.pages.commands import reproduce_command, spell_number, spell_value
from separatrix.pages.figures._base import PaperFigure
from separatrix.pages.illustration import draw
from separatrix.pages.pages import Section, render_page, render_section
from separatrix.pages.paper import save_figure

STATUS_CLASS = {ClaimStatus.HOLDS: "holds", ClaimStatus.ONLY_WHERE: "only", ClaimStatus.FAILS: "fails"}
ANSWER_COLUMNS = {
    "Distinguishes": ("distinguishes",),
    "Partial or undecided": ("partial", "undecided"),
    "Blind": ("blind",),
    "Saturated": ("saturated",),
}


def page(data: ReproductionData, figures: Sequence[PaperFigure], images: Mapping[str, bytes]) -> str:
    """Return the page; `images` are the figures as PNG, for printing and readers without scripts."""
    proof_figure, *figures = figures
    return render_page(
        "reproduction.html.j2",
        ("map", "chart"),
        title=_title(data),
        figures=figures,
        illustration=data.illustration,
        picture=save_figure(draw(data.illustration), "svg"),
        images=images,
        proved=proofs_section(data.proofs, proof_figure, images[proof_figure.name]),
        sections=(separations_section(data.answers), growth_section(data.growth), weights_section(data.weights)),
        far=spell_number(FAR),
        far_softmax=spell_number(data.far["softmax"].margin, 5),
        far_linear=spell_number(data.far["linear"].margin * FAR, 3),
        facts=_facts(data),
        base=" ".join(f"{name}={spell_value(value)}" for name, value in BASE.items()),
        ledger=[*_ledger_parts(data.ledger.entries)],
        ledger_summary=count_statuses(data.ledger.entries),
        made_by=reproduce_command("").line,
    )


def _title(data: ReproductionData) -> str:
    softmax, linear = (spell_number(data.near[name].distinguish) for name in ("softmax", "linear"))
    return f"Softmax tells D0 from D1 with probability {softmax}, linear attention with {linear}"


def _facts(data: ReproductionData) -> list[tuple[str, ...]]:
    outcomes = data.near.values()
    return [
        *(
            (f"P(tells apart), {name}", spell_number(outcome.distinguish, 6), repr(outcome.distinguish))
            for name, outcome in data.near.items()
        ),
        (
            "margin in √(log n), softmax : linear",
            " : ".join(spell_number(outcome.margin) for outcome in outcomes),
            " : ".join(repr(outcome.margin) for outcome in outcomes),
        ),
        ("statements checked", count_statuses(data.ledger.entries)),
    ]


@dataclass(frozen=True)
class LedgerPart:
    """A section of the ledger."""

    title: str
    summary: str
    has_failure: bool
    """Whether a statement fails; then the section is not folded."""
    rows: list[tuple[Any, ...]]


def _ledger_parts(entries: Sequence[Entry]) -> Iterator[LedgerPart]:
    """Yield the sections of the theory in their order."""
    for section in dict.fromkeys(entry.claim.section for entry in entries):
        members = [entry for entry in entries if entry.claim.section == section]
        has_failure = any(entry.finding.status is ClaimStatus.FAILS for entry in members)
        title = f"{section}. {SECTIONS.get(section, 'Others')}"
        yield LedgerPart(title, count_statuses(members), has_failure, [_claim_row(entry) for entry in members])


def _claim_row(entry: Entry) -> tuple[Any, ...]:
    finding = entry.finding
    holding, total = sum(point.holds for point in finding.points), len(finding.points)
    return (
        entry,
        f"[{entry.claim.provenance}]",
        (STATUS_CLASS[finding.status], finding.status.value),
        finding.where,
        finding.slack,
        str(total) if holding == total else f"{holding} of {total} hold",
    )


def proofs_section(data: ProvedStatements, figure: PaperFigure, image: bytes) -> Section:
    """Return the statements about every n, each with its certificate."""
    return render_section(
        "proofs",
        "Proved for every n",
        "reproduction_proofs.html.j2",
        proofs=[
            (proof, (name, data.files[f"proofs/{name}.json"], f"proofs/{name}.v" in data.files))
            for name, proof in data.proofs.items()
        ],
        theorem=data.theorem,
        laws=[(name, law.statement, law.reason) for name, law in data.laws.items()],
        figure=figure,
        image=image,
    )


def weights_section(weights: Weights) -> Section:
    """Return other weight matrices of linear attention, with their price."""
    rows = [
        (
            choice,
            ", ".join(choice.needs) or "–",
            spell_number(float(choice.attention[1])),
            spell_number(float(choice.margin)),
            f"{spell_number(choice.distinguish)}, {choice.verdict}",
            ", ".join(
                "not defined" if error.distinguish is None else spell_number(error.distinguish)
                for error in choice.if_amplitude_differs
            ),
        )
        for choice in weights.choices
    ]
    rescued = sum(choice.verdict == "distinguishes" for choice in weights.choices)
    return render_section(
        "weights",
        f"With {rescued} of {len(weights.choices)} weight matrices linear attention distinguishes, each at a price",
        "reproduction_weights.html.j2",
        "Other weights",
        weights=weights,
        rows=rows,
    )


def separations_section(answers: Sequence[PointAnswer]) -> Section:
    """Return which mechanism beats which on which constructions, with the evidence of every answer."""
    separations = find_separations(answers)
    mechanisms = list(dict.fromkeys(answer.mechanism for answer in answers))
    pairs = [
        (
            winner,
            [
                [row for row in separations if (row.winner.mechanism, row.loser.mechanism) == (winner, loser)]
                for loser in mechanisms
            ],
        )
        for winner in mechanisms
    ]
    table = [
        (
            name,
            [
                [answer for answer in answers if answer.name == name and answer.word in words]
                for words in ANSWER_COLUMNS.values()
            ],
        )
        for name in dict.fromkeys(answer.name for answer in answers)
    ]
    return render_section(
        "separations",
        _separations_title(separations),
        "reproduction_separations.html.j2",
        "Comparison of mechanisms",
        most=max((len(cell) for _, cells in pairs for cell in cells), default=1),
        losers=["", *(f"beats {name}" for name in mechanisms)],
        pairs=pairs,
        columns=["Construction", *ANSWER_COLUMNS],
        answers=table,
    )


def _separations_title(separations: Sequence[PaperSeparation]) -> str:
    names = sorted(
        {
            row.construction.name
            for row in separations
            if row.winner.mechanism in LINEAR_FAMILY and row.loser.mechanism == "softmax"
        }
    )
    if not names:
        return "Comparison of mechanisms: no mechanism of the linear family beats softmax"
    return f"Comparison of mechanisms: the linear family beats softmax on {', '.join(names)}"


def growth_section(rows: Iterable[ScalingRow | NoScaling]) -> Section:
    """Return the growth of the margin with n for every mechanism."""
    words = " ".join(f"{name}={value}" for name, value in GROWTH_PARAMETERS.items())
    laws = [row.scaling.law.name for row in rows if isinstance(row, ScalingRow)]
    constant = laws.count("constant")
    return render_section(
        "scaling",
        f"The margin stays constant as n grows for {constant} of {len(laws)} mechanisms that were fitted",
        "reproduction_growth.html.j2",
        "Growth of the margin",
        rows=[(row.mechanism, *_law_cells(row)) for row in rows],
        line=f"separatrix scaling spike all {words} --of margin",
    )


def _law_cells(row: ScalingRow | NoScaling) -> tuple[str, str, str, str]:
    if isinstance(row, NoScaling):
        return "not computed", row.reason, "", ""
    law, values = row.scaling.law, row.scaling.values
    lengths = f"{spell_number(float(values[0].x))} to {spell_number(float(values[-1].x))}"
    return law.exponent_text.replace("-", "−"), law.name, lengths, row.scaling.engine
