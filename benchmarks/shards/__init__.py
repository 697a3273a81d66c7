"""Measures how shards share the load of a broker."""
