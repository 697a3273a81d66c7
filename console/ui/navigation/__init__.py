"""Define the navigation and the command palette."""
