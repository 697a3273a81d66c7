"""Browses messages, reads their trace, and groups dead letters."""
