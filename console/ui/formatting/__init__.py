"""Formats numbers and times, pages tables, compares JSON values; no I/O."""
