"""The load generator: producers, consumers and the loop over their sockets."""
