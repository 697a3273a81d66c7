"""Drafts of routing changes: stored, discussed and applied."""
