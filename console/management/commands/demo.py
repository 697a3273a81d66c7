"""Run the demo workload: `manage.py demo`."""

import logging
import textwrap

from django.core.management.base import BaseCommand, CommandError

from console.accounts import initial_admin
from console.ops import demo

LINE_LENGTH = 100


class Command(BaseCommand):
    help = "Run a demo workload against the running broker: order processing over STOMP."
    requires_system_checks = ()  # they load every page of the console, which takes seconds and is not needed here

    def add_arguments(self, parser) -> None:
        parser.add_argument(
            "--seconds", type=float, default=demo.SECONDS, help="duration in seconds (default: %(default)g)"
        )
        parser.add_argument("--login", default=initial_admin.NAME, help="user (default: %(default)s)")
        parser.add_argument(
            "--passcode", help="password (default: password of the initial admin, from the data folder)"
        )

    def handle(self, *, seconds: float, login: str, passcode: str | None, **options) -> None:
        self.stdout.write(f"running the demo workload for {seconds:g} s; press Ctrl-C to stop")
        self.stdout.flush()
        logging.getLogger("stomp.py").setLevel(logging.CRITICAL)  # what it has to say, DemoFailed says
        try:
            outcome = demo.run_here(seconds, login=login, passcode=passcode)
        except demo.DemoFailed as failure:
            raise CommandError(
                f"{failure}. Check that Sluice is running (make run) with these ports and this password."
            ) from None
        self.stdout.write(textwrap.fill(str(outcome), LINE_LENGTH))
