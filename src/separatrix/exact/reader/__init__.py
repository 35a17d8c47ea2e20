"""The reader: the random-sign network that classifies attention outputs."""

from separatrix.exact.reader.network import FourLayerNetwork, Layers, draw_signs, fires

__all__ = ["FourLayerNetwork", "Layers", "draw_signs", "fires"]
