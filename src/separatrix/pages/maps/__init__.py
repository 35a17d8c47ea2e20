"""Maps and boundary curves as pages, pictures and tables."""
