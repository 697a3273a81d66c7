"""Serve pages that belong to no feature."""
