"""Scores that are inner products of feature maps: <phi(q), phi(k)>."""
