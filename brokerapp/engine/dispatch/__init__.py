"""Decide which consumer gets the next entry of a log."""
