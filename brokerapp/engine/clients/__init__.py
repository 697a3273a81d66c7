"""What the broker knows of a connected client."""
