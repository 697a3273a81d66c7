"""REST operations on routing definitions and drafts."""
