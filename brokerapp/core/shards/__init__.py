"""Writes to several stores of one broker: its shards."""
