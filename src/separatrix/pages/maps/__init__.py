"""Maps and boundary curves as pages, pictures and tables."""

from separatrix.pages.maps.write import CURVE_ENDINGS, MAP_ENDINGS, write_curve, write_map

__all__ = ["CURVE_ENDINGS", "MAP_ENDINGS", "write_curve", "write_map"]
