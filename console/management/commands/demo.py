"""`manage.py demo`: something to look at."""

import logging
import textwrap

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from console import demo
from console.management.commands import firstadmin

LINE_LENGTH = 100


class Command(BaseCommand):
    help = "Run a small order business against the running broker, over STOMP."

    def add_arguments(self, parser) -> None:
        parser.add_argument("--seconds", type=float, default=120.0, help="how long (default: %(default)g)")
        parser.add_argument("--login", default=firstadmin.NAME, help="user (default: %(default)s)")
        parser.add_argument("--passcode", help="password (default: what the first start kept in the data folder)")

    def handle(self, *, seconds: float, login: str, passcode: str | None, **options) -> None:
        environment = settings.SLUICE
        self.stdout.write(f"running a small order business for {seconds:g} s; Ctrl-C ends it earlier")
        self.stdout.flush()
        logging.getLogger("stomp.py").setLevel(logging.CRITICAL)  # what it has to say, DemoFailed says
        try:
            outcome = demo.run(
                environment.bind, environment.stomp_port, login, passcode or kept_password(), seconds=seconds
            )
        except demo.DemoFailed as failure:
            raise CommandError(
                f"{failure}. Is Sluice running (make run), with these ports and this password?"
            ) from None
        self.stdout.write(textwrap.fill(str(outcome), LINE_LENGTH))


def kept_password() -> str:
    """The first admin's password. Raises CommandError when it is not kept."""
    file = firstadmin.password_file()
    if not file.exists():
        raise CommandError(f"no password in {file}: name a user with --login and --passcode")
    return file.read_text().strip()
