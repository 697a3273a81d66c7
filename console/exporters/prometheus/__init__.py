"""Writes the broker's numbers in the Prometheus and OpenMetrics text formats."""
