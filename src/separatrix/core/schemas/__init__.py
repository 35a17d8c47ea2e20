"""Types of documents that are not classes of results yet."""
