"""Exact numbers, sums of logarithms, number formats, and how numbers and texts are spelled."""

from separatrix.core.numbers.exact import format_exact, parse_exact, parse_integer

__all__ = ["format_exact", "parse_exact", "parse_integer"]
