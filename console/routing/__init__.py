"""Routing as operators change it: forms, checks, drafts and their differences, the picture, what nobody needs."""
