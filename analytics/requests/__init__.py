"""Requests of runs: the catalogue of analyses, their parameters, the request itself, and its errors."""
