"""Runs the brokers in turn and reports what was measured."""
