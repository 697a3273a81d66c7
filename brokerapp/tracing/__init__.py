"""Trace events: what happened to every message, recorded in batches (docs/data.md)."""
