"""Routing as operators change it: forms, checks, drafts, the map, and issues."""
