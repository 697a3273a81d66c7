"""Searches for messages that take longer than a page waits: done by a worker, shown with progress and results."""
