"""Publishes advisories and answers requests for statistics."""
