"""Addresses: pages of this console as somebody outside calls them, for mails and webhooks."""

from __future__ import annotations

from django.conf import settings


def absolute_url(path: str) -> str:
    """The whole URL of a page."""
    return settings.SLUICE.console_url.rstrip("/") + path
