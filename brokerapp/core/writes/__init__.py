"""Writes that wait for the store, or for room in it."""
