"""Configure Django for the monitoring process: the console's settings without pages and sessions."""

from __future__ import annotations

from console.settings import *  # noqa: F403

ROOT_URLCONF = "console.exporters.server.urls"
ASGI_APPLICATION = "console.exporters.server.asgi.application"
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "allauth.account.middleware.AccountMiddleware",  # does nothing here; allauth refuses to start without it
]
