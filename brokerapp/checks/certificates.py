"""Check TLS certificates: their files, dates and host names, and whether servers show what is in the files."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from brokerapp.checks.results import Finding
from brokerapp.connections.tls import server_context
from brokerapp.errors import ConfigurationRefused
from brokerapp.model.transport_connector import TlsStores

if TYPE_CHECKING:
    from brokerapp.connections.key_stores import CertificateFacts

#: Time before the end of a certificate from which a renewal is late: certbot renews 30 days before.
LATE = timedelta(days=21)
#: Seconds that a handshake may take.
HANDSHAKE_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class CertificateUse:
    """The files of a certificate, the hosts that clients call by it, and the addresses where it is shown."""

    stores: TlsStores
    hosts: tuple[str, ...] = ()
    addresses: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class CertificateReading:
    """A certificate as it was found, at a time; `problem` says why it cannot be used."""

    path: str
    now: datetime
    hosts: tuple[str, ...] = ()  #: that clients call
    facts: CertificateFacts | None = None
    problem: str = ""
    differing: tuple[int, ...] = ()  #: ports where another certificate is shown
    exposed_key: str = ""  #: the file with the key, if every user of this machine can read it


def measure_certificates(uses: Sequence[CertificateUse]) -> list[CertificateReading]:
    """Read the files as listeners do, and ask those that listen which certificate they show."""
    return [_measure(each, datetime.now(UTC)) for each in uses if each.stores.key_store is not None]


def _measure(use: CertificateUse, now: datetime) -> CertificateReading:
    from brokerapp.connections import key_stores  # takes ten megabytes, which nodes without TLS do without

    assert use.stores.key_store is not None
    path = use.stores.key_store.path
    try:
        server_context(use.stores)  # reads the key, and compares it with the certificate
        facts = key_stores.read_certificate(use.stores.key_store)
        key = (use.stores.key or use.stores.key_store).path
        exposed = key if Path(key).stat().st_mode & stat.S_IROTH else ""
    except (ConfigurationRefused, OSError, ValueError) as wrong:
        return CertificateReading(path, now, problem=str(wrong))
    shown = {port: _shown_at(host, port) for host, port in use.addresses}
    differing = tuple(port for port, found in shown.items() if found is not None and found != facts.der)
    return CertificateReading(path, now, use.hosts, facts, differing=differing, exposed_key=exposed)


def _shown_at(host: str, port: int) -> bytes | None:
    """Return the certificate that a server shows; None where none listens, or it wants to see one first."""
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), HANDSHAKE_SECONDS) as plain,
            anybody.wrap_socket(plain) as encrypted,
        ):
            return encrypted.getpeercert(binary_form=True)
    except OSError:
        return None


def judge_certificates(found: Sequence[CertificateReading]) -> Iterator[Finding]:
    """Judge each certificate; one that expires soon must be renewed before clients refuse it."""
    if not found:
        yield Finding.skipped("No certificate is configured.")
    for each in found:
        yield from _judge(each)


def _judge(each: CertificateReading) -> Iterator[Finding]:
    if each.facts is None:
        yield Finding.failure(
            f"{each.problem}.", "Correct the file: until then servers keep the previous certificate, and do not start."
        )
        return
    facts, left = each.facts, each.facts.valid_until - each.now
    until = f"{facts.valid_until:%Y-%m-%d %H:%M} UTC"
    if facts.valid_from > each.now:
        yield Finding.failure(
            f"{each.path} is not valid before {facts.valid_from:%Y-%m-%d %H:%M} UTC.", "See the clock of this machine."
        )
    elif left <= timedelta(0):
        yield Finding.failure(f"{each.path} expired at {until}.", "Renew it: a changed file is used within seconds.")
    elif left < LATE:
        yield Finding.warning(
            f"{each.path} expires in {_days(left)}, at {until}.", "Renew it: a changed file is used within seconds."
        )
    else:
        yield Finding.ok(f"{each.path} ({facts.subject}) is valid until {until}.")
    if missing := [host for host in each.hosts if not covers(facts.hosts, host)]:
        has = ", ".join(facts.hosts) or "no host"
        yield Finding.warning(
            f"{each.path} is not for {', '.join(missing)}, but for {has}: clients refuse it.",
            "Obtain a certificate with this name, or correct SLUICE_URL.",
        )
    if each.exposed_key:
        yield Finding.warning(
            f"Every user of this machine can read the key in {each.exposed_key}.", f"chmod o-r {each.exposed_key}"
        )
    if each.differing:
        yield Finding.warning(
            f"Another certificate than that of {each.path} is shown at port {', '.join(map(str, each.differing))}.",
            "See the log for the reason, or restart what listens there.",
        )


def _days(left: timedelta) -> str:
    days = left.days
    return f"{days} day{'s' * (days != 1)}" if days else "less than a day"


def covers(names: Sequence[str], host: str) -> bool:
    """Return whether one of a certificate's names is that of the host; `*` stands for one label (RFC 6125)."""
    wanted = host.lower().rstrip(".")
    try:
        address = ipaddress.ip_address(wanted)
    except ValueError:
        _, _, domain = wanted.partition(".")
        return any(each.lower() in (wanted, f"*.{domain}") for each in names)
    return str(address) in names
