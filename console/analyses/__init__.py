"""Runs of analyses of the recorded traffic, and how their results are shown."""
