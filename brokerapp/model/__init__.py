"""Values of the broker: they parse, print and compare, and do no I/O."""
