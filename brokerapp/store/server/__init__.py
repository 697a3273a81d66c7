"""The Valkey process that a node runs itself, its files and its disk."""
