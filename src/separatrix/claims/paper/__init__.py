"""The reproduction: what it computes."""
