"""Whether other weight matrices would let linear attention tell the labels of the spike apart, and at which price."""

from separatrix.analysis.weights.comparison import weights
from separatrix.analysis.weights.result import AmplitudeError, WeightChoice, Weights

__all__ = ["AmplitudeError", "WeightChoice", "Weights", "weights"]
