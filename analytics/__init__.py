"""Offline questions about recorded traffic: the archive of trace events, Spark jobs over it, and their results."""
