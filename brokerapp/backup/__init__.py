"""Back up a broker into one file, and restore it."""
