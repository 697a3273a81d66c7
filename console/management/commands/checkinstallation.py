"""Check the installation: `manage.py checkinstallation`."""

import sys
from contextlib import suppress

from django.conf import settings
from django.core.management.base import BaseCommand

from console.checks.command_line import check


class Command(BaseCommand):
    """Passes its arguments on, so that they are the same as those of `sluice check`."""

    help = "Check ports, disk, store, certificates, database and other parts of the installation. Changes nothing."

    def run_from_argv(self, argv: list[str]) -> None:
        """Run the checks and exit with their code."""
        if settings.IS_NEW:  # loading the settings made the data directory
            settings.SECRET_FILE.unlink()
            with suppress(OSError):
                settings.SLUICE.data.rmdir()
        sys.exit(check(argv[2:], f"{argv[0]} {argv[1]}"))
