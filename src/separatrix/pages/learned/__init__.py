"""Trained evidence as pages, pictures and Markdown."""
