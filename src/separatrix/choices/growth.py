"""How the operations of a mechanism grow at a length, counted at lengths that show it."""

from __future__ import annotations

from separatrix.laws.costs import operations_law
from separatrix.mechanisms import Mechanism

LEAST, USUAL = 16, 1024
"""The longest of the lengths at which operations are counted: never less, and no more without a reason."""
BEYOND = 16
"""How many times a window, a block or another size of its own the longest one is, where n is."""


def counted_lengths(mechanism: Mechanism, n: int) -> tuple[int, int, int]:
    """Three lengths, each twice the one before, up to n, and far enough to see where a window ends.

    >>> from separatrix.mechanisms import mechanism_named
    >>> for name, n in (("softmax", 131_072), ("window:size=4096", 131_072), ("window:size=4096", 2048)):
    ...     print(name, counted_lengths(mechanism_named(name), n))
    softmax (256, 512, 1024)
    window:size=4096 (16384, 32768, 65536)
    window:size=4096 (512, 1024, 2048)
    """
    given = mechanism.parameters.filled().items()
    sizes = (value for name, value in given if type(value) is int and name != "seed")
    longest = max(LEAST, min(n, max(USUAL, BEYOND * max(sizes, default=0))))
    return longest // 4, longest // 2, longest


def growth(mechanism: Mechanism, n: int, width: int) -> tuple[float | None, tuple[int, ...]]:
    """As which power of the length operations grow, and where they were counted; None where they were not."""
    lengths = counted_lengths(mechanism, n)
    try:
        law = operations_law(mechanism, lengths, width)
    except Exception:  # a stranger's mechanism may raise anything
        law = None
    return (None, ()) if law is None else (law.exponent, lengths)
