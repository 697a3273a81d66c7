"""Browses messages, reads their trace, groups dead letters and runs jobs on messages."""
