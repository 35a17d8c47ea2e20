"""A state of fixed size, updated token by token; only the past is seen."""

from separatrix.mechanisms._base import Mechanism

RECURRENT: tuple[type[Mechanism], ...] = ()

__all__ = ["RECURRENT"]
