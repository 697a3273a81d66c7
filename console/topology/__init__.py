"""Nodes, network connectors and cluster of the broker, and the forwarding diagnosis."""
