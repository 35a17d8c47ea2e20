"""A report card as a page of its own, which opens offline."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

from separatrix.cards import Card, Standing, Unanswered
from separatrix.costs import CostCurve, Disagreement
from separatrix.files.writing import write_whole
from separatrix.numbers.json import json_text
from separatrix.reports.atlas import style
from separatrix.reports.cells import LETTERS, bits, blind_from, evidence, exponent, mark, probability
from separatrix.reports.drawing import static_style

ENDINGS = (".html", ".json")

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Report card: {name}</title>
<style>
body {{ font: 16px/1.5 Charter, Georgia, serif; color: #222; max-width: 64rem; }}
body {{ margin: 2rem auto; padding: 0 1rem; }}
p {{ max-width: 46rem; overflow-wrap: anywhere; }}
table {{ border-collapse: collapse; font: 14px/1.4 system-ui, sans-serif; margin: 1rem 0; }}
th, td {{ text-align: left; vertical-align: top; }}
th, td {{ padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #ddd; }}
td.word {{ padding-left: .6rem; white-space: nowrap; }}
td.number {{ white-space: nowrap; padding-left: .6rem; }}
td.evidence {{ min-width: 20rem; color: #555; }}
.scroll {{ overflow-x: auto; }}
img {{ max-width: 100%; }}
code {{ font-size: 14px; }}
</style>
<h1>{name}</h1>
<p><code>{formula}</code></p>
<p>{reading}</p>
<h2>What it tells apart</h2>
<p>P is the probability, over the random signs of the reader, that D0 stays silent and D1 fires: ≡ certified,
= exact, ~ sampled. The verdict is about this reader with its threshold. Blindness is searched for down from
n = 10<sup>12</sup>, or from the reference point where literal tokens are needed; ≈ is sampled.</p>
<div class="scroll"><table><tr>{who}<th>construction</th><th>verdict</th><th>P</th><th>margin grows</th>
<th>bits</th><th>blind from n</th><th>evidence</th></tr>
{standings}</table></div>
<h2>What it costs here</h2>
{costs}
<h2>What it keeps of the contract</h2>
<div class="scroll"><table>{contract}</table></div>
<h2>What it is like</h2>
{alike}
<p>Made by <code>separatrix assess {name}</code>.</p>
</html>
"""

ALIKE = """<table><tr><th>mechanism</th><th>distance (0 the same, 2 the opposite)</th></tr>{rows}</table>"""
COSTS = """<p>Width {width}, float32, one head, no gradients. Memory counts the tensors that torch made and
held; what is carried from token to token is {kinds}. {untimed}</p>
<img alt="time, memory and state against the length" src="data:image/png;base64,{picture}">"""


def page(card: Card) -> str:
    """The whole page."""
    cards = (card, *card.against)
    nearest = _rows((like.mechanism, f"{like.distance:.3f}") for like in card.likenesses[:5])
    alike = ALIKE.format(rows="\n".join(nearest)) if card.likenesses else "<p>It was not compared.</p>"
    return PAGE.format(
        name=escape(card.mechanism.spelled),
        formula=escape(card.mechanism.formula),
        reading=escape(card.reading),
        who="<th>mechanism</th>" if card.against else "",
        standings="\n".join(_standing(each, cell, cards) for each in cards for cell in each.standings),
        costs=_costs(cards),
        contract="\n".join(_rows(_contract(card))),
        alike=alike,
    )


def _standing(card: Card, cell: Standing | Unanswered, cards: tuple[Card, ...]) -> str:
    who = f"<td>{escape(card.mechanism.spelled)}</td>" if len(cards) > 1 else ""
    word = f'<td class="word" style="{style(cell.word)}"><b>{LETTERS[cell.word]}</b> {cell.word}</td>'
    numbers = ("", "", "", "")
    if isinstance(cell, Standing):
        p = f"{mark(cell)} {probability(cell.verdict.outcome.distinguish)}"
        numbers = (p, exponent(cell), bits(cell.verdict), blind_from(cell))
    middle = "".join(f'<td class="number">{escape(number)}</td>' for number in numbers)
    reason = f'<td class="evidence">{escape(evidence(cell))}</td>'
    return f"<tr>{who}<td>{escape(cell.name)}</td>{word}{middle}{reason}</tr>"


def _contract(card: Card) -> Iterator[tuple[str, str]]:
    yield from ((name, f"broken: {what}") for name, what in card.contract.failed.items())
    yield from ((name, "kept") for name in card.contract.passed)
    yield from ((name, f"does not apply: {why}") for name, why in card.contract.skipped.items())


def _rows(cells: Iterator[tuple[str, str]]) -> Iterator[str]:
    return (f"<tr><td>{escape(one)}</td><td>{escape(other)}</td></tr>" for one, other in cells)


def _costs(cards: tuple[Card, ...]) -> str:
    timed = {each.cost.mechanism: each.cost for each in cards if isinstance(each.cost, CostCurve)}
    untimed = [each.cost for each in cards if isinstance(each.cost, Disagreement)]
    why = " ".join(f"{each.mechanism} was not timed: {each.what}." for each in untimed)
    if not timed:
        return f"<p>{escape(why)}</p>"
    softmax = cards[0].softmax_cost
    curves = [*timed.values(), *([softmax] if isinstance(softmax, CostCurve) else [])]
    kinds = "; ".join(f"for {curve.mechanism} the {curve.state}" for curve in timed.values())
    return COSTS.format(
        width=curves[0].width,
        kinds=escape(kinds),
        untimed=escape(why),
        picture=base64.b64encode(picture(curves)).decode(),
    )


def picture(curves: list[CostCurve]) -> bytes:
    """Time, memory and state against the length, on log axes."""
    from matplotlib.figure import Figure

    shown = {curve.mechanism: curve for curve in curves}
    buffer = io.BytesIO()
    with static_style():
        figure = Figure(figsize=(9.0, 2.9))
        panels = figure.subplots(1, 3)
        for mark_, (name, curve) in zip("osD^vPX*" * 9, shown.items(), strict=False):
            lengths = [cost.length for cost in curve.costs]
            series = [
                [1e3 * cost.seconds for cost in curve.costs],
                [cost.peak_bytes / 2**20 for cost in curve.costs],
                [cost.state_bytes / 2**10 for cost in curve.costs],
            ]
            for axes, values in zip(panels, series, strict=True):
                axes.plot(lengths, values, marker=mark_, markersize=4, label=name)
        for axes, label in zip(panels, ("time, ms", "peak memory, MiB", "state or cache, KiB"), strict=True):
            axes.set(xscale="log", yscale="log", xlabel="n, number of tokens", ylabel=label)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=min(4, len(shown)))
        figure.savefig(buffer, format="png", dpi=160)
    return buffer.getvalue()


def write(card: Card, out: Path) -> None:
    """In the form the ending of `out` names."""
    makers: dict[str, Callable[[], str]] = {
        ".html": lambda: page(card),
        ".json": lambda: json_text(card.as_json(), indent=1) + "\n",
    }
    write_whole(out, makers[out.suffix]().encode())
