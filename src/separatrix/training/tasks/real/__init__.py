"""Tasks on real data, which `separatrix data` finds and fetches: no ceiling is known, floors are measured."""
