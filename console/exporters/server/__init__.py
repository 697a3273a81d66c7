"""Serve the monitoring endpoints in a process of their own."""
