"""Upgrade what an earlier version stored: `manage.py upgrade`, as `sluice upgrade` does."""

import sys

from django.core.management.base import BaseCommand

from console.upgrades.command_line import upgrade


class Command(BaseCommand):
    help = "Upgrade store, database and archive of an earlier version."
    requires_system_checks = ()

    def run_from_argv(self, argv: list[str]) -> None:
        """Pass the arguments on as they are."""
        sys.exit(upgrade(argv[2:], f"{argv[0]} {argv[1]}"))
