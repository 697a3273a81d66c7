"""Provide context, middleware and saved views for all pages."""
