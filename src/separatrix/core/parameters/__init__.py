"""Exact parameters, validated once at the boundary."""

from separatrix.core.errors import SeparatrixError, UsageError
from separatrix.core.parameters.declared import Parametrised, choice, exact, flag, limit, natural, random_seed, text
from separatrix.core.parameters.grid import Grid
from separatrix.core.parameters.model import (
    Constraint,
    Exact,
    Flag,
    Natural,
    Parameters,
    find_known,
    is_absent,
    nearest,
    require_known,
)
from separatrix.core.parameters.words import all_parameters, listed_mechanisms, read_words, split_mechanisms

__all__ = [
    "Constraint",
    "Exact",
    "Flag",
    "Grid",
    "Natural",
    "Parameters",
    "Parametrised",
    "SeparatrixError",
    "UsageError",
    "all_parameters",
    "choice",
    "exact",
    "find_known",
    "flag",
    "is_absent",
    "limit",
    "listed_mechanisms",
    "natural",
    "nearest",
    "random_seed",
    "read_words",
    "require_known",
    "split_mechanisms",
    "text",
]
