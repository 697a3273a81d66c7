"""Pages about routing."""
