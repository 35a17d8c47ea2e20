"""Two mechanisms in one."""

from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms.hybrid.window_linear import WindowLinear

HYBRID: tuple[type[Mechanism], ...] = (WindowLinear,)

__all__ = ["HYBRID", "WindowLinear"]
