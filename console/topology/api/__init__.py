"""REST operations on nodes, connectors and the cluster."""
