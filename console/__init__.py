"""The operations console: a Django project with one app. It reaches the broker through gateway.py only."""

from console.celery import app as celery_app

__all__ = ["celery_app"]
