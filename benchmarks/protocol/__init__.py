"""STOMP as the load generator writes and reads it."""
