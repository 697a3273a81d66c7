"""REST operations on health and history."""
