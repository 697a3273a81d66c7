"""Provide the operations console, a Django project with one app; gateway.py connects it to the broker."""
