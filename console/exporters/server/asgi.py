"""Run the process of the monitoring endpoints, which shares store and database with the console."""

from __future__ import annotations

import os

os.environ["DJANGO_SETTINGS_MODULE"] = "console.exporters.server.settings"

from django.core.asgi import get_asgi_application

application = get_asgi_application()
