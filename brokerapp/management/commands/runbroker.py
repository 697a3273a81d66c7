"""`manage.py runbroker` for Django: its help, and calls from Python. The work is brokerapp.management.runbroker's."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from brokerapp.errors import BrokerError
from brokerapp.management import runbroker


class Command(BaseCommand):
    """Runs until SIGTERM or SIGINT."""

    help = runbroker.SUMMARY
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        runbroker.add_arguments(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            runbroker.run(Namespace(**options), self.stdout, self.stderr)
        except (BrokerError, OSError) as error:
            raise CommandError(str(error)) from error
