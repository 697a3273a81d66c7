"""Forms that edit definitions and policies."""
