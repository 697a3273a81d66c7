"""Trace events: what happened to every message, recorded as Arrow record batches (design, section 9)."""
