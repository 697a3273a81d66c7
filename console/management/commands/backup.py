"""`manage.py backup`: write a backup of this installation, or of a broker without a console."""

import sys

from django.core.management.base import BaseCommand

from console.backups.command_line import backup


class Command(BaseCommand):
    def run_from_argv(self, argv: list[str]) -> None:
        sys.exit(backup(argv[2:], "manage.py"))
