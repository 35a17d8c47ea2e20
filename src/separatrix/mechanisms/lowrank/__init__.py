"""Attention through a few summaries of the keys."""
