#!/usr/bin/env python
"""Django's command line in a checkout: migrate, shell, ...; and the verbs of `sluice`, some by names of their own."""

import os
import sys
from pathlib import Path

#: Verbs of `sluice` by the names that Django's command line has them under. They start without Django.
VERBS = {"runbroker": "broker", "brokerctl": "ctl", "backup": "backup", "restore": "restore"}


def main() -> None:
    """Run the command named on the command line."""
    if verb := VERBS.get("".join(sys.argv[1:2])):
        from brokerapp.management import sluice

        sys.exit(sluice.run_verb(verb, sys.argv[2:], f"{Path(sys.argv[0]).name} {sys.argv[1]}"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:  # a variable that the settings cannot use
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
