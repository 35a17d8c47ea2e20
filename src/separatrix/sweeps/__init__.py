"""Sweeps: plans of work items, executors that run them, and the store that keeps each result once."""
