"""Figure 2: where softmax separates, over the spike and the row sum."""

from __future__ import annotations

import numpy as np

from separatrix.claims.paper.figures import (
    BASE,
    BASE_R,
    LARGE_N,
    MECHANISMS,
    MIDDLE,
    PHASE_WIDTH,
    REQUIRED_BLOCKS,
    SHARE_B,
    SMALL_N,
    PhaseMap,
)
from separatrix.pages.commands import spell_number, verdict_command
from separatrix.pages.figures._base import PROBABILITY, FigurePanel, PaperFigure
from separatrix.pages.looks import Look
from separatrix.pages.maps.figure import MapFigure, MapPanel, OverlayLine, PlaneAxis
from separatrix.pages.maps.picture import zero_lines

STRIP_COLOUR = "#ff7f4d"
UNIT = "in units of √(log n)"


def make_figure(data: PhaseMap) -> PaperFigure:
    """Return the figure."""
    return PaperFigure(
        name="phase",
        title=_title(data),
        caption=_caption(data),
        commands=tuple(verdict_command(name, MIDDLE, f"P = {spell_number(p)}") for name, p in data.middle.items()),
        panels=(FigurePanel("", _map(data)),),
    )


def _map(data: PhaseMap) -> MapFigure:
    x, y = (
        PlaneAxis(name, f"{label}, {UNIT}", log=False, values=values, texts=[f"{value:.6g}" for value in values])
        for name, label, values in (("a1", "a₁", data.a1), ("b + c", "b + c", data.r))
    )
    lines = [
        OverlayLine(Look("a₁(a₁ + b + c) = 1, the boundary as n → ∞", "#ffffff"), data.limit, data.r),
        *(
            OverlayLine(Look(f"P = ½ at n = {spell_number(SMALL_N)}", "#ffffff", (2, 3)), *piece)
            for piece in zero_lines(x, y, data.small - 0.5)
        ),
        *(OverlayLine(Look("|a₁ − b| = 0.1", STRIP_COLOUR, (8, 4)), *_strip(data, edge)) for edge in (0.1, -0.1)),
    ]
    panels = tuple(_panel(data, name, tuple(lines) if name == "softmax" else ()) for name in MECHANISMS)
    title = f"{PROBABILITY} on spike at n = {spell_number(LARGE_N)}"
    return MapFigure(x, y, panels, {f"P = ½ at n = {spell_number(LARGE_N)}": 0.5}, {"title": title, "place": None})


def _panel(data: PhaseMap, mechanism: str, lines: tuple[OverlayLine, ...]) -> MapPanel:
    title = f"{mechanism}, n = {spell_number(LARGE_N)}"
    values, margin = data.large[mechanism], data.margin[mechanism]
    return MapPanel.of_probabilities(mechanism, title, values, margin, lines=lines)


def _strip(data: PhaseMap, edge: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the line a1 - b = edge, as far as it lies where softmax separates."""
    a1 = data.r * float(SHARE_B) + edge
    is_inside = a1 > data.limit
    return a1[is_inside], data.r[is_inside]


def _title(data: PhaseMap) -> str:
    """Return on which share of the map each mechanism tells D0 from D1."""
    shares = {name: float(np.mean(data.large[name] >= 0.99)) for name in MECHANISMS}
    softmax, linear = (f"on {share:.0%} of the map" if share else "nowhere" for share in shares.values())
    return f"At n = {spell_number(LARGE_N)} softmax tells D0 from D1 {softmax}, linear attention {linear}"


def _caption(data: PhaseMap) -> tuple[str, ...]:
    exact_count = sum(int(np.isfinite(values).sum()) for values in data.large.values())
    linear = float(np.nanmax(data.large["linear"]))
    return (
        f"P(tells apart) at n = {spell_number(LARGE_N)}, d = {PHASE_WIDTH:,}, m = {BASE['m']}, "
        f"a₀ = {BASE['a0']}, over the spike a₁ and the row sum b + c of an ordinary token, "
        "split b : c = 2 : 1 as at the base point. d is wide: the theorem's condition "
        f"$d - 2 >= 200 b^2 log({{4m}}/δ)$ asks for at most {REQUIRED_BLOCKS:,.0f} here (δ = 0.01), so it "
        f"hides nothing. Exact at {exact_count:,} of the {2 * data.a1.size * data.r.size:,} points of the "
        "two maps.",
        "The white line is the sharp boundary as n → ∞, $a_1(a_1 + b + c) = 1$; the dotted one is where "
        f"P = ½ already at n = {spell_number(SMALL_N)}. At b + c = {BASE_R:.1f} the boundary lies at a₁ = "
        f"{data.limit_at_base:.4f}; P passes ½ at a₁ = {data.crossings[SMALL_N]:.3f} for n = "
        f"{spell_number(SMALL_N)} and at {data.crossings[LARGE_N]:.3f} for n = {spell_number(LARGE_N)}: "
        "lower, since the spike need only add about 0.1 to its row, not be attended to fully. Between the "
        "two dashed lines $|a_1 - b| < 0.1$ (the theorem asks for $a_1 - b > 0.1$): a sign vector then fires "
        f"on the spike only if the spike's sign and its block's are both +, and with m = {BASE['m']} of them "
        f"the probability stops at {spell_number(data.in_strip)}. Linear attention is blind: its largest "
        f"value on the map is {spell_number(linear)}.",
    )
