"""Serve the REST API for all console operations, described by OpenAPI."""
