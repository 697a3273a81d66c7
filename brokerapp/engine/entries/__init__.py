"""Entries of a message log and their order."""
