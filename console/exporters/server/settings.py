"""Django's settings for the process with the machine endpoints: the console's, without pages, sessions and cookies."""

from __future__ import annotations

from console.settings import *  # noqa: F403

ROOT_URLCONF = "console.exporters.server.urls"
ASGI_APPLICATION = "console.exporters.server.asgi.application"
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "allauth.account.middleware.AccountMiddleware",  # does nothing here; allauth refuses to start without it
]
