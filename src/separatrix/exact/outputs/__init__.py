"""What attention returns for the two labels, in whatever arithmetic it is known."""
