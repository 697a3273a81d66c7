"""Upgrade what an earlier version stored: `manage.py upgrade`."""

import sys
from contextlib import suppress

from django.conf import settings
from django.core.management.base import BaseCommand

from console.upgrades.command_line import upgrade


class Command(BaseCommand):
    """Passes its arguments on, so that they are the same as those of `sluice upgrade`."""

    help = "Upgrade store, database and archive of an earlier version."

    def run_from_argv(self, argv: list[str]) -> None:
        """Run the upgrade and exit with its code."""
        if settings.IS_NEW:  # loading the settings made the data directory
            settings.SECRET_FILE.unlink()
            with suppress(OSError):
                settings.SLUICE.data.rmdir()
        sys.exit(upgrade(argv[2:], f"{argv[0]} {argv[1]}"))
