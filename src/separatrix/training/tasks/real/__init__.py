"""Tasks on real data sets: the ceiling is unknown, the floors are measured."""
