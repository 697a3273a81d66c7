"""Reconstructs the path of one message from the trace and the operators' actions."""
