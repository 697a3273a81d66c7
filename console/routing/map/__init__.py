"""Computes the routing map: graph, layout, traffic and findings."""
