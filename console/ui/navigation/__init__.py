"""The menu and the command palette."""
