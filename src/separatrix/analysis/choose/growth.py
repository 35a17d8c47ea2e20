"""How the operations of a causal pass grow with its length, counted at lengths that show it."""

from __future__ import annotations

from separatrix.analysis.laws.costs import operations_law
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.features._base import FeatureMechanism
from separatrix.mechanisms.positional._around import AroundAnother

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
    longest = max(LEAST, min(n, max(USUAL, BEYOND * _own_length(mechanism))))
    return longest // 4, longest // 2, longest


def _own_length(mechanism: Mechanism) -> int:
    """The longest window, block or other size in tokens among its parameters, or those of its inner one."""
    if isinstance(mechanism, AroundAnother):
        return _own_length(mechanism.inner)
    if isinstance(mechanism, FeatureMechanism):  # numbers of features are no lengths
        return 0
    given = mechanism.parameters.filled().items()
    return max((value for name, value in given if type(value) is int and name != "seed"), default=0)


def growth(mechanism: Mechanism, n: int, width: int) -> tuple[float | None, tuple[int, ...]]:
    """As which power of n the operations of a causal pass grow, and where they were counted.

    They are counted without causal where there is no causal form; None where they cannot be counted.
    """
    lengths = counted_lengths(mechanism, n)
    try:
        law = operations_law(mechanism, lengths, width)
    except Exception:  # a stranger's mechanism may raise anything
        law = None
    return (None, ()) if law is None else (law.exponent, lengths)
