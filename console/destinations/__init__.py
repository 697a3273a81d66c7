"""Queues and topics: lists, operations and placement."""
