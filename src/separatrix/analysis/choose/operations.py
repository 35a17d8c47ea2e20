"""The growth of the operations of a causal pass with its length, counted at lengths that show it."""

from __future__ import annotations

from separatrix.analysis.laws.costs import operations_law
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.features._base import FeatureMechanism
from separatrix.mechanisms.positional._wrapper import WrapperMechanism

MIN_COUNTED, USUAL_COUNTED = 16, 1024
"""Bounds of the longest length at which operations are counted, for a mechanism without a window."""
WINDOW_FACTOR = 16
"""The longest length is this many times a window, a block or another size of the mechanism, up to n."""


def counted_lengths(mechanism: Mechanism, n: int) -> tuple[int, int, int]:
    """Return three lengths, each twice the one before, up to n, and long enough to see where a window ends.

    >>> from separatrix.mechanisms import mechanism_named
    >>> for name, n in (("softmax", 131_072), ("window:size=4096", 131_072), ("window:size=4096", 2048)):
    ...     print(name, counted_lengths(mechanism_named(name), n))
    softmax (256, 512, 1024)
    window:size=4096 (16384, 32768, 65536)
    window:size=4096 (512, 1024, 2048)
    """
    longest = max(MIN_COUNTED, min(n, max(USUAL_COUNTED, WINDOW_FACTOR * _window_length(mechanism))))
    return longest // 4, longest // 2, longest


def _window_length(mechanism: Mechanism) -> int:
    """Return the longest window, block or other size in tokens among the parameters; 0 without any."""
    if isinstance(mechanism, WrapperMechanism):
        return _window_length(mechanism.inner_mechanism)
    if isinstance(mechanism, FeatureMechanism):  # its numbers of features are not lengths
        return 0
    parameters = mechanism.parameters.complete_values().items()
    return max((value for name, value in parameters if type(value) is int and name != "seed"), default=0)


def fit_operations(mechanism: Mechanism, n: int, width: int) -> tuple[float | None, tuple[int, ...]]:
    """Return the power of n with which operations grow, and the lengths at which they were counted.

    A mechanism without a causal form is counted in the form that it has. None if counting is not possible.
    """
    lengths = counted_lengths(mechanism, n)
    try:
        law = operations_law(mechanism, lengths, width)
    except Exception:  # a user's mechanism may raise anything
        law = None
    return (None, ()) if law is None else (law.exponent, lengths)
