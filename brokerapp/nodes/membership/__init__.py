"""Which nodes form the broker, and what is unique among them."""
