"""Several stores of one broker: its shards."""
