"""One bridge: demand, consumers at the source, forwarding to the target."""
