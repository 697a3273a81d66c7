"""Context, middleware and saved views that all pages share."""
