"""Drawing of proofs: P over all n, as a step function whose last value holds for ever."""

from __future__ import annotations

import math
from collections.abc import Sequence

from separatrix.core.numbers import format_exact
from separatrix.exact.proofs import Proof, Proofs
from separatrix.pages.looks import FAINT, INK, PRINTED, choose_looks
from separatrix.pages.paper import Axes

LARGEST_FLOAT = 10**300
MARGIN = 0.25
"""The share of the axis, in decades, beyond the last change of P."""


def draw_proof(result: Proof, axes: Axes) -> None:
    """Draw P over n for one mechanism."""
    _draw([result], axes)
    axes.set_title(f"{result.mechanism.spelled} on {result.construction.name}: {result.word or 'not one verdict'}")


def draw_proofs(result: Proofs, axes: Axes) -> None:
    """Draw P over n for every mechanism with a proof."""
    _draw(result.answers, axes)
    axes.set_title(result.answers[0].construction.name)


def _draw(proofs: Sequence[Proof], axes: Axes) -> None:
    looks = choose_looks(proof.mechanism.spelled for proof in proofs)
    starts = [jump.n for proof in proofs for jump in proof.jumps]
    # Beyond the range of floats, the axis shows the logarithm itself.
    has_floats = max(starts) < LARGEST_FLOAT
    first, last = math.log10(min(starts)), math.log10(max(starts))
    end = last + MARGIN * max(last - first, 2.0)

    def place(logarithm: float) -> float:
        return 10**logarithm if has_floats else logarithm

    for proof in proofs:
        style = looks[proof.mechanism.spelled].paper_style() | {"marker": ""}
        x = [place(math.log10(jump.n)) for jump in proof.jumps]
        y = [jump.distinguish for jump in proof.jumps]
        axes.step([*x, place(end)], [*y, y[-1]], where="post", clip_on=False, **style, label=proof.mechanism.spelled)
        axes.plot([place(end)], [y[-1]], ">", color=style["color"], ms=5, clip_on=False)
    delta = proofs[0].delta
    for level in (delta, 1 - delta):
        axes.axhline(float(level), color=PRINTED[FAINT], lw=0.8, ls=(0, (2, 2)))
    axes.axvline(place(last), color=PRINTED[FAINT], lw=0.8)
    axes.text(place((last + end) / 2), 0.5, "for all\nlarger n", ha="center", va="center", color=PRINTED[INK], size=7.5)
    axes.set(xscale="log" if has_floats else "linear", xlim=(place(first), place(end)), ylim=(-0.03, 1.03))
    levels = f"dashed: P = {format_exact(delta)} and P = {format_exact(1 - delta)}"
    axes.set(xlabel=f"{'n' if has_floats else 'log₁₀ n'} ({levels})", ylabel="P(tells apart)")
    if len(proofs) > 1:
        axes.legend(loc="center")
