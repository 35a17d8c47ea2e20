"""Requirements on speed and memory, measured as ratios within one run: `make bench`."""
