"""Commit the writes of a broker to its store, in batches."""
