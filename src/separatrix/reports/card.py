"""A report card as a page of its own, which opens offline."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

from separatrix.assess import Card, CostCurve, Standing
from separatrix.parameters.files import write_whole
from separatrix.reports.atlas import COLOURS, INKS, cell_text
from separatrix.reports.figures._base import static_style

ENDINGS = (".html", ".json")

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Report card: {name}</title>
<style>
body {{ font: 16px/1.5 Georgia, serif; color: #222; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; font: 14px/1.4 system-ui, sans-serif; margin: 1rem 0; }}
th, td {{ text-align: left; vertical-align: top; }}
th, td {{ padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #ddd; }}
td.word {{ padding-left: .6rem; }}
img {{ max-width: 100%; }}
code {{ font-size: 14px; }}
</style>
<h1>{name}</h1>
<p><code>{formula}</code></p>
<p>{reading}</p>
<h2>What it tells apart</h2>
<p>P is the probability, over the random signs of the paper's reader, that D0 stays silent and D1 fires. The
verdict is about this reader with its threshold.</p>
<table><tr><th>mechanism</th><th>construction</th><th>verdict</th><th>evidence</th><th>blind from n</th></tr>
{standings}</table>
<h2>What it costs here</h2>
<p>Width {width}, float32, one head, no gradients. Memory counts the tensors that torch made and held.</p>
<img alt="time and memory against the length" src="data:image/png;base64,{picture}">
<h2>What it keeps of the contract</h2>
<table>{contract}</table>
<h2>What it is like</h2>
<table><tr><th>mechanism</th><th>distance (0 the same, 2 the opposite)</th></tr>{likenesses}</table>
<p>Made by <code>separatrix assess {name}</code>.</p>
</html>
"""


def page(card: Card) -> str:
    """The whole page."""
    cards = (card, *card.against)
    nearest = [(like.mechanism, f"{like.distance:.3f}") for like in card.likenesses[:5]]
    return PAGE.format(
        name=escape(card.mechanism.spelled),
        formula=escape(card.mechanism.formula),
        reading=escape(card.reading),
        width=card.cost.width,
        standings="\n".join(_standing(each, standing) for each in cards for standing in each.standings),
        picture=base64.b64encode(picture([each.cost for each in cards], card.softmax_cost)).decode(),
        contract="\n".join(_rows(_contract(card))),
        likenesses="\n".join(_rows(iter(nearest))),
    )


def _standing(card: Card, standing: Standing) -> str:
    word, outcome = standing.verdict.word, standing.verdict.outcome
    style = f"background:{COLOURS[word]};color:{INKS[word]}"
    text = escape(cell_text(standing)).replace("\n", "<br>")
    blind = "–" if standing.blind_from is None else f"{standing.blind_from:,}"
    return (
        f"<tr><td>{escape(card.mechanism.spelled)}</td><td>{escape(standing.name)}</td>"
        f'<td class="word" style="{style}">{word}<br>{text}</td>'
        f"<td>{escape(outcome.engine)}: {escape(outcome.evidence)}</td><td>{blind}</td></tr>"
    )


def _contract(card: Card) -> Iterator[tuple[str, str]]:
    yield from ((name, f"broken: {what}") for name, what in card.contract.failed.items())
    yield from ((name, "kept") for name in card.contract.passed)
    yield from ((name, f"does not apply: {why}") for name, why in card.contract.skipped.items())


def _rows(cells: Iterator[tuple[str, str]]) -> Iterator[str]:
    return (f"<tr><td>{escape(one)}</td><td>{escape(other)}</td></tr>" for one, other in cells)


def picture(curves: list[CostCurve], softmax: CostCurve) -> bytes:
    """Time and memory against the length, on log axes, softmax for comparison."""
    from matplotlib.figure import Figure

    shown = {curve.mechanism: curve for curve in [*curves, softmax]}
    buffer = io.BytesIO()
    with static_style():
        figure = Figure(figsize=(7.0, 2.8))
        time, memory = figure.subplots(1, 2)
        for mark, (name, curve) in zip("osD^vPX*" * 9, shown.items(), strict=False):
            lengths = [cost.length for cost in curve.costs]
            time.plot(lengths, [1e3 * cost.seconds for cost in curve.costs], marker=mark, label=name)
            memory.plot(lengths, [cost.peak_bytes / 2**20 for cost in curve.costs], marker=mark)
        for axes, label in ((time, "time, ms"), (memory, "peak memory, MiB")):
            axes.set(xscale="log", yscale="log", xlabel="n, number of tokens", ylabel=label)
        figure.legend(loc="outside upper center", ncols=min(4, len(shown)))
        figure.savefig(buffer, format="png")
    return buffer.getvalue()


def write(card: Card, out: Path) -> None:
    """In the form the ending of `out` names."""
    makers: dict[str, Callable[[], str]] = {
        ".html": lambda: page(card),
        ".json": lambda: json.dumps(card.as_json(), indent=1) + "\n",
    }
    write_whole(out, makers[out.suffix]().encode())
