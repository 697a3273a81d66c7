"""Searches for messages: a quick one within a page's time limit, and one that a worker runs in the background."""
