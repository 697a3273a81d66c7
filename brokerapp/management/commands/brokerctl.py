"""`manage.py brokerctl` for Django: its help, and calls from Python. The work is brokerapp.management.brokerctl's."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from brokerapp.errors import BrokerError
from brokerapp.management import brokerctl


class Command(BaseCommand):
    """Runs one verb."""

    help = brokerctl.SUMMARY
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        brokerctl.add_arguments(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            brokerctl.run(Namespace(**options), self.stdout)
        except (BrokerError, OSError) as error:
            raise CommandError(str(error)) from error
