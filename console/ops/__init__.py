"""Processes of an installation: supervisor, broker host, settings and demo."""
