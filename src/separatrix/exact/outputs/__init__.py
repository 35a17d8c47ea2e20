"""Attention outputs for the two labels: in rationals and balls, or in float64."""
