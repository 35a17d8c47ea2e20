"""Attention to few keys: by score, by place, or both."""
