"""The operations console: a Django project with one app. It reaches the broker through gateway.py only."""
