"""The page of what was learned."""
