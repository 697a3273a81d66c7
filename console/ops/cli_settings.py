"""Configure Django for `brokerctl`, which must start fast: only what writes audit entries."""

from __future__ import annotations

from brokerapp.system.environment import Environment
from console.ops.database_settings import databases

INSTALLED_APPS = ["console.apps.RecordingConfig"]
DATABASES = databases(Environment.read().database_url)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
