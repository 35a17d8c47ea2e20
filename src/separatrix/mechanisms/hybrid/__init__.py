"""Two mechanisms in one."""

from separatrix.mechanisms._base import Mechanism

HYBRID: tuple[type[Mechanism], ...] = ()

__all__ = ["HYBRID"]
