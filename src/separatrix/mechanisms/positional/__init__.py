"""Softmax that knows how far apart tokens are."""
