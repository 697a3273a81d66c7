"""Django's settings for `brokerctl`, which must start at once: what writes the audit trail, and nothing else."""

from __future__ import annotations

from console.settings import *  # noqa: F403

INSTALLED_APPS = ["console.apps.RecordingConfig"]
