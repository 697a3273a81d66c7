"""Serve monitoring endpoints on a separate port, in the formats that tools for ActiveMQ expect."""
