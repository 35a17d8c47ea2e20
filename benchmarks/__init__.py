"""What speed and memory are promised, measured as ratios within one run: `make bench`."""
