"""Start all processes of Sluice under one supervisor: `sluice up`, `manage.py up`, which `make run` runs."""

import os

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from brokerapp.backup.data_folder import check_decided
from brokerapp.checks.ports import port_problems, port_uses
from brokerapp.connections.installation_tls import tls_stores
from brokerapp.connections.tls import server_context
from brokerapp.errors import CONFIGURATION_EXIT_CODE, BrokerError, ConfigurationRefused
from brokerapp.system.environment import CLIENT_PORTS
from brokerapp.system.process_lock import OWNER_UMASK, DirectoryInUse
from console.accounts import initial_admin
from console.accounts.secret_key import secret_key
from console.ops.client_addresses import OPENWIRE_SCHEMES, local_addresses, reachable
from console.ops.command_line import UP_SUMMARY
from console.ops.processes import missing_extras, process_specs
from console.ops.supervisor import PermanentFailure, Supervisor
from console.upgrades.start import prepare_start


class Command(BaseCommand):
    help = UP_SUMMARY
    requires_system_checks = ()

    def handle(self, **options) -> None:
        environment = settings.SLUICE
        refuse_undecided(environment)
        os.umask(OWNER_UMASK)  # of all that it starts, too
        if missing := list(missing_extras(environment)):
            raise CommandError("\n".join(missing), returncode=CONFIGURATION_EXIT_CODE)
        self.stdout.write(f"starting Sluice in {environment.data}")
        if not environment.data.exists():
            check_start(environment)  # what is refused leaves no data folder behind
        try:
            secret_key(settings.SECRET_FILE)
            supervisor = Supervisor(process_specs(environment), environment.data, say=self.say)
        except DirectoryInUse as taken:
            raise CommandError(f"Sluice cannot start: {taken} with SLUICE_DATA") from taken
        except ConfigurationRefused as refused:  # the data folder cannot be created
            raise CommandError(str(refused), returncode=CONFIGURATION_EXIT_CODE) from refused
        check_start(environment)
        try:
            password = self.prepare(environment)
            supervisor.run(announce=lambda: self.say(welcome(environment, password)))
        except (ConfigurationRefused, PermanentFailure) as refused:  # as what is stored by another version
            raise CommandError(str(refused), returncode=CONFIGURATION_EXIT_CODE) from refused
        except BrokerError as failed:
            raise CommandError(str(failed)) from failed

    def prepare(self, environment) -> str | None:
        """Check and migrate what is stored; return the initial admin's password on the first start.

        Raises ConfigurationRefused for what a newer version stored.
        """
        prepare_start(environment, self.say)
        password = initial_admin.create_initial_admin()
        connections.close_all()
        return password

    def say(self, line: str) -> None:
        """Print one line to the terminal immediately."""
        self.stdout.write(line)
        self.stdout.flush()


def refuse_undecided(environment) -> None:
    """Raise CommandError for a data folder that was restored from a backup, until an operator says what it is."""
    try:
        check_decided(environment.data)
    except ConfigurationRefused as refused:
        raise CommandError(str(refused), returncode=CONFIGURATION_EXIT_CODE) from refused


def check_start(environment) -> None:
    """Raise CommandError with a sentence for each port that is not available, and for a certificate that is no use."""
    troubles, code = list(port_problems(port_uses(environment))), 1
    if environment.tls_certificate:
        try:
            server_context(tls_stores(environment))
        except ConfigurationRefused as wrong:
            troubles.append(str(wrong))
            code = CONFIGURATION_EXIT_CODE
    if troubles:
        raise CommandError("\n".join(troubles), returncode=code)


def welcome(environment, password: str | None) -> str:
    """Return the addresses and the sign-in of the installation; the password only on the first start."""
    host = reachable(environment.bind)
    kept = initial_admin.password_file()
    addresses = local_addresses(environment, tuple(CLIENT_PORTS))
    openwire = [each.uri for each in addresses if each.scheme in OPENWIRE_SCHEMES]
    stomp = [each.stomp_text for each in addresses if each.scheme not in OPENWIRE_SCHEMES]
    scheme = "https" if environment.console_tls else "http"
    console = f"{scheme}://{host}:{environment.console_port}/"
    if environment.is_url_set:
        served = "" if environment.public_port == environment.console_port else f", served at {console}"
        console = environment.console_url.rstrip("/") + "/" + served
    if environment.console_tls and environment.http_port is not None:
        console += f", redirected to from http://{host}:{environment.http_port}/"
    monitor = f"{reachable(environment.plain_bind)}:{environment.monitor_port}"
    metrics = f"{scheme}://{monitor}/metrics, /admin/xml/, /api/jolokia/"
    if environment.console_tls:
        metrics += ", also by http://"
    if password:
        secret = f"password {password} (stored in {kept})"
    else:  # who changed it deletes the file, and a restore without secrets brings none
        secret = f"password in {kept}" if kept.exists() else "with its password"
    return f"""
  Sluice is ready.

    Console   {console}
    STOMP     {", ".join(stomp) or "at the addresses of OpenWire"}
    OpenWire  {", ".join([*openwire, "for JMS applications"]) if openwire else "not served"}
    Metrics   {metrics}
    Sign in   user {initial_admin.NAME}, {secret}
    Logs      {environment.data / "log"}

  Press Ctrl-C to stop all processes.
"""
