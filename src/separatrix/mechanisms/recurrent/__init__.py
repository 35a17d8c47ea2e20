"""A state of fixed size, updated token by token; only the past is seen."""
