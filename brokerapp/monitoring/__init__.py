"""Report the health and the figures of a node over HTTP."""
