"""Drain a node: hand over what it owns, and let its clients go to other nodes."""
