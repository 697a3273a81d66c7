"""Distributed transactions (XA)."""
