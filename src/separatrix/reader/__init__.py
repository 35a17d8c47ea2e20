"""Who looks at what attention returned: the random-sign network."""

from separatrix.reader.network import FourLayerNetwork, Layers, draw_signs, fires

__all__ = ["FourLayerNetwork", "Layers", "draw_signs", "fires"]
