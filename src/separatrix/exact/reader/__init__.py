"""Who looks at what attention returned: the random-sign network."""

from separatrix.exact.reader.network import FourLayerNetwork, Layers, draw_signs, fires

__all__ = ["FourLayerNetwork", "Layers", "draw_signs", "fires"]
