"""Two mechanisms in one."""

from separatrix.mechanisms.hybrid.window_linear import WindowLinear

__all__ = ["WindowLinear"]
