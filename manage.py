#!/usr/bin/env python
"""Django's command line: runbroker, brokerctl, migrate, ..."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def main() -> None:
    """Run the command named on the command line."""
    if sys.argv[1:2] == ["brokerctl"]:
        _brokerctl()
        return
    if sys.argv[1:2] == ["runbroker"]:
        _runbroker()
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:  # a variable that the settings cannot use
        sys.exit(f"error: {error}")


def _brokerctl() -> None:
    """Half of its verbs need nothing of Django, which takes longer to start than they take."""
    with _importing():
        from brokerapp.management.commands.brokerctl import Command
        from brokerapp.management.operations import operating
    operating.connect(_record)
    Command().run_from_argv(sys.argv)


def _runbroker() -> None:
    """A node uses nothing of the console, whose modules would stay in its memory to the end."""
    with _importing():
        from brokerapp.management.commands.runbroker import Command
    Command().run_from_argv(sys.argv)


def _record(sender: Any, **kwargs: Any) -> None:
    """Have what is about to be done recorded."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.ops.cli_settings")
    with _importing():
        from django.apps import apps
        from django.conf import settings

        # what Django's setup does, but for the addresses of pages and the log's mails
        apps.populate(settings.INSTALLED_APPS)


@contextmanager
def _importing() -> Iterator[None]:
    """Modules stay to the end: to look again and again through what they made takes as long as a verb of brokerctl."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


if __name__ == "__main__":
    main()
