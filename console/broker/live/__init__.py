"""Live data: the channels of pages, and the socket that carries them."""
