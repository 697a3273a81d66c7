"""Views of the routing pages."""
