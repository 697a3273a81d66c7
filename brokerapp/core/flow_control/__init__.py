"""Limits of memory and store, and the sends that wait at them."""
