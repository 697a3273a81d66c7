#!/usr/bin/env python
"""Django's command line: runbroker, brokerctl, migrate, ..."""

import os
import sys
from typing import Any


def main() -> None:
    """Run the command named on the command line."""
    if sys.argv[1:2] == ["brokerctl"]:
        _brokerctl()
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


def _brokerctl() -> None:
    """Half of its verbs need nothing of Django, which takes longer to start than they take."""
    from brokerapp.management.commands.brokerctl import Command
    from brokerapp.management.operations import operating

    operating.connect(_record)
    Command().run_from_argv(sys.argv)


def _record(sender: Any, **kwargs: Any) -> None:
    """Have what is about to be done recorded."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.recording_settings")
    from django.apps import apps
    from django.conf import settings

    apps.populate(
        settings.INSTALLED_APPS
    )  # what Django's setup does, but for the addresses of pages and the log's mails


if __name__ == "__main__":
    main()
