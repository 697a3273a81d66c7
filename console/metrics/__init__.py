"""Health and history of the broker's numbers."""
