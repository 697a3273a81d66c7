"""The console as an app of Django: what it listens to."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    """Connects what others tell with what the console records."""

    name = "console"
    default = True

    def ready(self) -> None:
        from console import celery
        from console.access import permission_version
        from console.accounts import login
        from console.audit import cli_listener
        from console.ui import url_converters

        assert celery.app  # the one that tasks are asked through, in every process
        assert url_converters.NameConverter  # which addresses are made of
        login.connect_signals()
        permission_version.connect_signals()
        cli_listener.connect_signal()


class RecordingConfig(AppConfig):
    """The console as far as what operators do on the command line is recorded."""

    name = "console"
    label = "console"

    def import_models(self) -> None:
        """The one table it writes."""
        self.models = self.apps.all_models[self.label]
        self.models_module = import_module("console.audit.models")

    def ready(self) -> None:
        from console.audit import cli_listener

        cli_listener.connect_signal()
