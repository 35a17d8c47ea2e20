"""Exact answers: attention outputs, the random-sign reader, the engines, verdicts and readers."""
