"""Linear attention on the spike with any weight matrix that treats blocks alike, in exact fractions."""

from separatrix.exact.weights.linear import LinearReading, UnnormalisedRow, read_linear
from separatrix.exact.weights.scores import BlockScores, RowScores, SpikePoint

__all__ = ["BlockScores", "LinearReading", "RowScores", "SpikePoint", "UnnormalisedRow", "read_linear"]
