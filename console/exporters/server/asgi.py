"""Run the process of the monitoring endpoints, which shares store and database with the console."""

from __future__ import annotations

import os

os.environ["DJANGO_SETTINGS_MODULE"] = "console.exporters.server.settings"

from django.conf import settings
from django.core.asgi import get_asgi_application

from console.ops.request_limits import limit_requests

application = limit_requests(get_asgi_application(), settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
