"""report.html: one file with everything in it."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape

from separatrix import __version__
from separatrix.claims import Entry, Ledger, Status
from separatrix.paper.base import BASE
from separatrix.paper.reproduction import Facts
from separatrix.reports.commands import number, spelled, whole_run
from separatrix.reports.drawing import Drawn, Panel
from separatrix.reports.markup import Section, command_line, legend, prose
from separatrix.reports.template import INTRODUCTION, LEDGER_INTRODUCTION, PAGE, POLICY, SCRIPT, STYLE

TITLE = "What softmax attention tells apart and linear attention does not"
TAGS = {
    "paper": "stated in the summary of the paper",
    "rec": "reconstructed: consistent with every known fragment of the paper, and checked here",
    "ours": "a result of this project",
}
STATUS_CLASS = {Status.HOLDS: "holds", Status.ONLY_WHERE: "only", Status.FAILS: "fails"}
COLUMNS = ("Statement", "Tag", "Status", "Where", "Slack", "Points tried")


def render(
    ledger: Ledger,
    figures: Sequence[Drawn],
    images: Mapping[str, bytes],
    facts: Facts,
    sections: Sequence[Section] = (),
) -> str:
    """The page as text. `images` are the figures as PNG, for paper and for readers without scripts."""
    from plotly.offline import get_plotlyjs

    body = "\n".join(
        (
            f"<h1>{escape(TITLE)}</h1>",
            INTRODUCTION,
            _navigation(figures, sections),
            _caveat(facts),
            _glance(ledger, facts),
            _ledger(ledger),
            *(_figure(i, drawn, images[drawn.name]) for i, drawn in enumerate(figures, 1)),
            *map(_section, sections),
            f"<footer>separatrix {escape(__version__)}. Every number on this page comes from one run of "
            f"<code>{escape(whole_run('').line)}</code>.</footer>",
        )
    )
    return PAGE.substitute(
        title=escape(TITLE), policy=POLICY, style=STYLE, body=body, library=get_plotlyjs(), script=SCRIPT
    )


def _navigation(figures: Sequence[Drawn], sections: Sequence[Section]) -> str:
    links = [("ledger", "Ledger")] + [(drawn.name, f"Figure {i}") for i, drawn in enumerate(figures, 1)]
    links += [(section.name, section.title) for section in sections]
    return (
        "<nav>" + " ".join(f'<a href="#{escape(name)}">{escape(text)}</a>' for name, text in links) + "</nav>"
    )


def _caveat(facts: Facts) -> str:
    softmax, linear = facts.far_margin["softmax"], facts.far_margin["linear"]
    return (
        '<section class="caveat"><h2>What this does and does not say</h2>'
        "<p>“Cannot distinguish” is about <em>this</em> reader with <em>this</em> threshold, τ = (c + "
        "0.1)√(log n), and this m. With a tuned threshold, no noise and m of order 2<sup>d</sup> the linear "
        "network separates the data too. What "
        f"survives is the margin between the two families: Θ(1) for softmax ({prose(number(softmax, 5))} "
        f"√(log n) at n = {prose(number(facts.far))}) and about {escape(number(linear * facts.far, 3))}/n "
        "for linear attention (Figure 4).</p><p>Only a summary of the paper was at hand, not its text, "
        "proofs or figures: the figures are drawn from what is computed here, and nothing was compared with "
        "the paper's own. The details of the construction are reconstructed, and each statement carries its "
        "tag: [paper] for the summary, [rec] or [ours].</p></section>"
    )


def _glance(ledger: Ledger, facts: Facts) -> str:
    counts = {status: sum(e.finding.status is status for e in ledger.entries) for status in Status}
    came_out = ", ".join(f"{count} {_verb(status, count)}" for status, count in counts.items() if count)
    base = " ".join(f"{name}={spelled(value)}" for name, value in BASE.items())
    shown = [
        (f"P[distinguishes], {name}, at the base point", number(p, 6))
        for name, p in facts.distinguish.items()
    ]
    shown += [
        (
            "margin in √(log n), softmax : linear, at the base point",
            " : ".join(number(x) for x in facts.margin.values()),
        )
    ]
    shown += [("claims", came_out or "none were run")]
    cells = "".join(f"<div><dt>{escape(term)}</dt><dd>{prose(value)}</dd></div>" for term, value in shown)
    return f'<dl class="facts">{cells}</dl><p>The base point is <code>{escape(base)}</code>.</p>'


def _verb(status: Status, count: int) -> str:
    plural = {Status.HOLDS: "hold", Status.ONLY_WHERE: "hold with a condition", Status.FAILS: "fail"}
    single = {Status.HOLDS: "holds", Status.ONLY_WHERE: "holds with a condition", Status.FAILS: "fails"}
    return (single if count == 1 else plural)[status]


def _ledger(ledger: Ledger) -> str:
    tags = "".join(f"<li><strong>[{tag}]</strong> {escape(meaning)}</li>" for tag, meaning in TAGS.items())
    head = "".join(f"<th>{escape(column)}</th>" for column in COLUMNS)
    rows = "\n".join(map(_row, ledger.entries))
    return (
        f'<h2 id="ledger">The ledger</h2>{LEDGER_INTRODUCTION}<ul class="tags">{tags}</ul>'
        f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>"
    )


def _row(entry: Entry) -> str:
    claim, finding = entry.claim, entry.finding
    held, tried = sum(point.holds for point in finding.points), len(finding.points)
    statement = (
        f'<span class="name">{escape(claim.name)}</span>{escape(claim.statement)}'
        f'<span class="summary">{escape(finding.summary)}</span>'
    )
    cells = {
        "statement": statement,
        "tag": f"[{escape(claim.provenance)}]",
        "status": f'<span class="{STATUS_CLASS[finding.status]}">{escape(finding.status.value)}</span>',
        "where": escape(finding.where),
        "slack": escape(finding.slack),
        "points": str(tried) if held == tried else f"{held} of {tried} hold",
    }
    row = "".join(
        f'<td class="{kind}" data-label="{label}">{content}</td>'
        for label, (kind, content) in zip(COLUMNS, cells.items(), strict=True)
    )
    return f"<tr>{row}</tr>"


def _figure(index: int, drawn: Drawn, image: bytes) -> str:
    panels = "\n".join(_panel(f"{drawn.name}-{i}", panel) for i, panel in enumerate(drawn.panels))
    caption = "".join(f"<p>{prose(text)}</p>" for text in drawn.caption)
    commands = "".join(map(command_line, drawn.commands))
    encoded = base64.b64encode(image).decode()
    files = f'<a href="figures/{drawn.name}.png">PNG</a> <a href="figures/{drawn.name}.pdf">PDF</a>'
    return (
        f'<section id="{escape(drawn.name)}"><h2>Figure {index}. {prose(drawn.title)}</h2>\n<figure>'
        f'<img class="paper" alt="{escape(drawn.title)}" src="data:image/png;base64,{encoded}">'
        f'{legend(drawn.keys)}<div class="panels columns-{drawn.columns}">{panels}</div>'
        f'<figcaption><div class="words">{caption}</div>{commands}'
        f'<p class="downloads">For papers: {files}</p></figcaption></figure></section>'
    )


def _section(section: Section) -> str:
    return f'<section id="{escape(section.name)}"><h2>{prose(section.title)}</h2>\n{section.body}</section>'


def _panel(identity: str, panel: Panel) -> str:
    specification = str(panel.plot.to_json()).replace("<", "\\u003c")
    commands = "".join(map(command_line, panel.commands))
    return (
        f'<div><h3>{prose(panel.title)}</h3><div class="plot" data-source="{identity}"></div>'
        f'<script type="application/json" id="{identity}">{specification}</script>{commands}</div>'
    )
