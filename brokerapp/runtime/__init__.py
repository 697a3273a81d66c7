"""Run one node: start, listeners, configuration, status reports, stop."""
