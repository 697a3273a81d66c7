"""Connections between the nodes of a broker and the messages they exchange."""
