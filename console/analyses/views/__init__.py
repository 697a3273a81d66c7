"""Pages about analyses and their runs."""
