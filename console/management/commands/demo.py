"""Run the demo workload: `manage.py demo`."""

import logging
import textwrap

from django.core.management.base import BaseCommand, CommandError

from console.accounts import initial_admin
from console.ops import command_line, demo

LINE_LENGTH = 100


class Command(BaseCommand):
    help = command_line.DEMO_SUMMARY
    requires_system_checks = ()  # they load every page of the console, which takes seconds and is not needed here

    def add_arguments(self, parser) -> None:
        command_line.add_demo_arguments(parser)

    def handle(self, *, seconds: float, login: str | None, passcode: str | None, **options) -> None:
        logging.getLogger("stomp.py").setLevel(logging.CRITICAL)  # what it has to say, DemoFailed says

        def announce() -> None:
            self.stdout.write(f"running the demo workload for {seconds:g} s; press Ctrl-C to stop")
            self.stdout.flush()

        try:
            outcome = demo.run_here(seconds, login=login or initial_admin.NAME, passcode=passcode, announce=announce)
        except demo.DemoFailed as failure:
            raise CommandError(f"{failure}. Check that Sluice is running with these ports and this password.") from None
        self.stdout.write(textwrap.fill(str(outcome), LINE_LENGTH))
