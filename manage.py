#!/usr/bin/env python
"""Django's command line in a checkout: migrate, shell, ...; and the verbs of `sluice`, some by names of their own."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

#: Verbs of `sluice` by the names that Django's command line has them under. They start without Django.
VERBS = {"runbroker": "broker", "brokerctl": "ctl", "backup": "backup", "restore": "restore",
         "upgrade": "upgrade", "checkinstallation": "check"}  # fmt: skip
#: Those that are commands of Django, too.
COMMANDS = {"up": "up", "demo": "demo"}


def main() -> None:
    """Run the command named on the command line."""
    verb = VERBS.get("".join(sys.argv[1:2]))
    if find_spec("redis" if verb else "django") is None:
        sys.exit("error: Sluice's packages are missing here: run make setup, then .venv/bin/python manage.py")
    if verb:
        from brokerapp.management import sluice

        sys.exit(sluice.run_verb(verb, sys.argv[2:], f"{Path(sys.argv[0]).name} {sys.argv[1]}"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    if sys.argv[1:] in ([], ["help"], ["-h"], ["--help"]):
        list_verbs()
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:  # a variable that the settings cannot use
        from brokerapp.errors import CONFIGURATION_EXIT_CODE

        sys.stderr.write(f"error: {error}\n")
        sys.exit(CONFIGURATION_EXIT_CODE if sys.argv[1] == "up" else 1)  # of a service, which systemd restarts else


def list_verbs() -> None:
    """Print what is Sluice's own, each with a line, before what Django lists of all commands."""
    from brokerapp.management import sluice

    names = COMMANDS | VERBS
    width = max(map(len, names))
    lines = [f"  {name:<{width}}  {sluice.VERBS[verb].summary}" for name, verb in names.items()]
    print("Sluice's commands:", *lines, "", "All commands, with Django's:", sep="\n", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
