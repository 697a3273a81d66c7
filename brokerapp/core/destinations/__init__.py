"""Queues, topics and their logs: creation, removal, restoring from the store."""
