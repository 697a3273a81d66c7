"""Back up an installation with its console: by command, by a page, and on schedule."""
