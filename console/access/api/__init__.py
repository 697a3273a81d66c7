"""REST operations on masking rules."""
