"""Compares definitions and finds the destinations that they affect."""
