"""Reconstructs the journey of a message from the trace and from operator actions."""
