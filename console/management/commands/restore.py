"""`manage.py restore`: restore a backup into this installation, or for a broker without a console."""

import sys

from django.core.management.base import BaseCommand

from console.backups.command_line import restore


class Command(BaseCommand):
    def run_from_argv(self, argv: list[str]) -> None:
        sys.exit(restore(argv[2:], "manage.py"))
