"""Write statistics of the broker in the Prometheus and OpenMetrics formats."""
