"""Live numbers: the mirror of the broker, what each topic shows of it, and the socket that carries it."""
