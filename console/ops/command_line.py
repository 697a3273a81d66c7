"""Serve the verbs of the command `sluice` that need the console. Django is set up only for what runs after options."""

from __future__ import annotations

import math
import os
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from brokerapp.errors import CONFIGURATION_EXIT_CODE, ConfigurationRefused
from brokerapp.management import brokerctl
from brokerapp.management.output import exit_status, write_error
from brokerapp.management.sluice import importing
from brokerapp.management.verbs.operations import before_operation
from brokerapp.system.checkout import command
from brokerapp.system.data_directory import check_data_directory
from brokerapp.system.environment import Environment

UP_SUMMARY = "Start all processes of Sluice on this machine and keep them running until Ctrl-C."
DEMO_SUMMARY = "Run a demo workload against the running broker: order processing over STOMP."
#: How long the demo runs when nobody says.
DEMO_SECONDS = 120.0


def up(arguments: list[str], program: str) -> int:
    """Start all processes and keep them running; return the exit status."""
    ArgumentParser(prog=program, description=UP_SUMMARY).parse_args(arguments)
    return _run_command("up")


def demo(arguments: list[str], program: str) -> int:
    """Run the demo workload; return the exit status."""
    parser = ArgumentParser(prog=program, description=DEMO_SUMMARY)
    add_demo_arguments(parser)
    options = parser.parse_args(arguments)
    return exit_status(_refuse_missing_data) or _run_command("demo", **vars(options))


def _refuse_missing_data() -> None:
    """Raise ConfigurationRefused where Sluice was never started."""
    data = Environment.read().data
    check_data_directory(data)
    if not data.exists():
        raise ConfigurationRefused(f"SLUICE_DATA={data}: not found: start Sluice with `{command('up')}` first")


def add_demo_arguments(parser: ArgumentParser) -> None:
    """Add the options of the demo."""
    parser.add_argument(
        "--seconds", type=_duration, default=DEMO_SECONDS, help="duration in seconds (default: %(default)g)"
    )
    parser.add_argument("--login", help="user (default: the initial admin)")
    parser.add_argument("--passcode", help="password (default: password of the initial admin, from the data folder)")


def _duration(text: str) -> float:
    """Return seconds of more than 0. Raises ArgumentTypeError."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and found > 0):
        raise ArgumentTypeError(f"{text} must be a number of more than 0")
    return found


def ctl(arguments: list[str], program: str) -> int:
    """Run a verb of brokerctl, with an entry in the audit log for each change; return the exit status."""
    before_operation.append(_load_audit_log)
    return brokerctl.ctl(arguments, program)


def _load_audit_log() -> None:
    """Load what writes audit entries, which takes longer than the verbs that change nothing."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.ops.cli_settings")
    with importing():
        from django.apps import apps
        from django.conf import settings

        # what Django's setup does, but for the addresses of pages and the log's mails
        apps.populate(settings.INSTALLED_APPS)


def _run_command(name: str, **options: Any) -> int:
    """Run a management command of the console; errors are written as `sluice` writes them."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    import django
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import CommandError, load_command_class

    try:
        django.setup()
        load_command_class("console", name).handle(**options)
    except CommandError as error:
        write_error(error)
        return error.returncode
    except ImproperlyConfigured as error:  # a variable that the settings cannot use
        write_error(error)
        return CONFIGURATION_EXIT_CODE if name == "up" else 1
    return 0
