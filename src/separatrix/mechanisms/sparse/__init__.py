"""Attention to few keys: by score, by position, or both."""
