"""Queries the audit trail for pages, files and the REST API."""
