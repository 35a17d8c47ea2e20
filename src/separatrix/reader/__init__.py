"""Who looks at what attention returned: the random-sign network."""

from separatrix.reader.network import FourLayerNetwork, Layers, fires

__all__ = ["FourLayerNetwork", "Layers", "fires"]
