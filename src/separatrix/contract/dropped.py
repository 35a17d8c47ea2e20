"""What counts among few counts among many: no token, coordinate or feature is dropped beyond some size.

Whatever counts has a gradient that is not 0. Who chooses keys gives some of them no weight; which ones hangs
on what they are. What has no gradient whatever stands there, and only where there are many, was dropped.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calculus import weights_of
from separatrix.contract.calls import fast
from separatrix.contract.inputs import LENGTH, Shape, few, modes, require_finite, rounding, sizes, tokens
from separatrix.contract.larger import needs_asking
from separatrix.mechanisms import Mechanism

FEW_TOKENS, MANY_TOKENS = (LENGTH, 66, 130), (257, 514, 777, 1024, 1101)
"""Odd and even numbers, at and between those that fill blocks."""
FEW_WIDTHS, MANY_WIDTHS = ((6, 4), (10, 12)), ((96, 130), (128, 96), (130, 128))
"""Of queries and keys, and of values."""
SEEDS = (1, 2, 3)
"""What is dropped is dropped whatever stands there."""
TOKENS, COORDINATES = -2, -1
BOTH = "k and v"

Case = tuple[int, Shape]


@check("gradient_of_long_inputs", "more_keys", "more_coordinates", "more_features", "later_places")
def nothing_dropped(mechanism: Mechanism) -> None:
    """Among many tokens, coordinates and features each one counts: asked where among few each does."""
    needs_asking(mechanism)
    asked = False
    for causal in modes(mechanism):
        if mechanism.length_free:
            some = [(length, few(mechanism)) for length in FEW_TOKENS]
            many = [(length, few(mechanism)) for length in MANY_TOKENS]
            asked |= _asked(mechanism, causal, TOKENS, some, many)
        if mechanism.fixed_width is None and mechanism.fixed_features is None:
            some = [(LENGTH, sizes(mechanism, 1, 1, *wide)) for wide in FEW_WIDTHS]
            many = [(LENGTH, sizes(mechanism, 1, 1, *wide)) for wide in MANY_WIDTHS]
            asked |= _asked(mechanism, causal, COORDINATES, some, many)
    if not asked:
        raise Skipped("among few tokens not all count")


def _asked(mechanism: Mechanism, causal: bool, axis: int, some: Iterable[Case], many: Iterable[Case]) -> bool:
    """Whether all count in some cases, so that it could be asked in many; Broken if in these some do not."""
    seen = [_counts(mechanism, causal, axis, *case) for case in some]
    letters = [letter for letter in seen[0] if all(bool(each[letter].all()) for each in seen)]
    for case in many if letters else ():
        found = _counts(mechanism, causal, axis, *case)
        for letter in letters:
            if not bool(found[letter].all()):
                _require_other(mechanism, causal, axis, case, letter, found[letter])
    return bool(letters)


def _counts(
    mechanism: Mechanism, causal: bool, axis: int, length: int, shape: Shape, seed: int = SEEDS[0]
) -> dict[str, Tensor]:
    """Which places along an axis of q, of k and of v the results follow.

    A token counts by its key or by its value: a key that a query sees alone has the weight 1 whatever it is.
    """
    given = [x.requires_grad_() for x in tokens(length, shape=shape, seed=seed)]
    out = fast(mechanism, given[0], given[1], given[2], causal=causal)
    if not out.requires_grad:
        raise Skipped("no gradient flows at all")
    slopes = torch.autograd.grad(
        (out * weights_of(out)).sum(), given, allow_unused=True, materialize_grads=True
    )
    found = {}
    for letter, slope in zip("qkv", slopes, strict=True):
        require_finite(slope, f"the gradient of {letter} ({length} tokens, causal={causal})")
        largest = slope.abs().movedim(axis, 0).flatten(1).amax(1)
        found[letter] = largest > rounding(slope.dtype) * largest.max()
    return {BOTH: found["k"] | found["v"]} if axis == TOKENS else found


def _require_other(
    mechanism: Mechanism, causal: bool, axis: int, case: Case, letter: str, counts: Tensor
) -> None:
    """Broken if it is the same ones that count for nothing whatever stands there."""
    again = (_counts(mechanism, causal, axis, *case, seed)[letter] for seed in SEEDS[1:])
    if not all(torch.equal(each, counts) for each in again):
        return
    length, shape = case
    dropped = (~counts).nonzero()[:, 0].tolist()
    more = f", and so are {len(dropped) - 1} more" if len(dropped) > 1 else ""
    if axis == TOKENS:
        what = f"token {dropped[0]} of {length} is nothing to any result, whatever {BOTH} are there{more}"
        what = f"{what}; of fewer tokens each counts (causal={causal})"
        what = f"{what}; if that is meant, say length_free = False"
    else:
        width = shape[3] if letter == "v" else shape[2]
        noun = "feature" if letter == "v" else "coordinate"
        what = f"{noun} {dropped[0]} of {width} of {letter} is nothing to any result{more}"
        what = f"{what}; of narrower tokens each counts (causal={causal})"
    raise Broken(what)
