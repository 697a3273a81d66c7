"""Previews the route of a message, and tests drafts on recorded traffic."""
