"""The web process that serves the endpoints for monitoring tools."""
