"""Build absolute URLs of pages for emails and webhooks."""

from __future__ import annotations

from django.conf import settings


def absolute_url(path: str) -> str:
    """Return the absolute URL of a page."""
    return settings.SLUICE.console_url.rstrip("/") + path
