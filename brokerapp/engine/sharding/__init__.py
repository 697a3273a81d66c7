"""Pure decisions of a broker with several shards: what has to be in one store, and in which."""
