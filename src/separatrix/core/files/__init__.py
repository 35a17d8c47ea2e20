"""Reading and writing files of strangers: whole, within bounds, or not at all."""
