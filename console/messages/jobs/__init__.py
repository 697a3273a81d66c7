"""Repair: what people do to messages. Named jobs in the background, templates, saved selectors."""
