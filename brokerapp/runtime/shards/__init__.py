"""The shards of a node."""
