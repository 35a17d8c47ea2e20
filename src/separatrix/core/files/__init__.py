"""Reading untrusted files within bounds, and writing files atomically."""
