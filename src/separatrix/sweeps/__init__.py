"""Grids of cells that survive: planned, computed once, kept, and gone on with after any stop."""
