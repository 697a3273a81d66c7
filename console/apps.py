"""Configure the console as a Django app: connect the handlers of signals."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    """Connect signals of users, sign-ins and CLI operations to their handlers."""

    name = "console"
    default = True

    def ready(self) -> None:
        from console import celery
        from console.access import permission_version
        from console.accounts import credential_notices, login
        from console.audit import cli_listener
        from console.ui import url_converters

        assert celery.app  # the one that tasks are asked through, in every process
        assert url_converters.NameConverter  # which addresses are made of
        login.connect_signals()
        credential_notices.connect_signal()
        permission_version.connect_signals()
        cli_listener.listen()


class RecordingConfig(AppConfig):
    """Configure what `brokerctl` needs to write audit entries."""

    name = "console"
    label = "console"

    def import_models(self) -> None:
        """Import the model of audit entries only."""
        self.models = self.apps.all_models[self.label]
        self.models_module = import_module("console.audit.models")

    def ready(self) -> None:
        from console.audit import cli_listener

        cli_listener.listen()
