"""The console as an app of Django: what it listens to."""

from __future__ import annotations

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    """Connects what others tell with what the console records."""

    name = "console"

    def ready(self) -> None:
        from brokerapp.management.operations import operated
        from console import login, operations, rights_version

        login.watch()
        rights_version.watch()
        operated.connect(operations.record, dispatch_uid="console")
