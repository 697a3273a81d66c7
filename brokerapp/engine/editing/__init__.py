"""Checks and builds messages that operators edit or write."""
