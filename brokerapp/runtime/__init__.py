"""The life of one node: start, listeners, configuration, status reports, stop."""
