"""Post webhooks to addresses of users, as far as the rule for outbound connections allows them.

An address is checked when somebody gives it, and again when it is posted to: the name is resolved once then, each of
its addresses is checked, and the connection is made to one of these, as a name may stand for another machine by then.
Of one that did not take a post only the status is told, that its certificate is not trusted, or that the time ran out.
Of all else one sentence is told, whether nothing listens at the port or something that does not speak HTTP: a webhook
must not serve to scan ports. The log has the rest.
"""

from __future__ import annotations

import http.client
import logging
import re
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from http import HTTPStatus
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from brokerapp.errors import RequestRefused
from brokerapp.network.options.outbound_rules import OutboundRule, plain
from brokerapp.system.store_address import StoreAddress

logger = logging.getLogger(__name__)

#: Seconds a webhook has for all of it: to be reached, to take the post, and to answer.
TIMEOUT = 5.0
#: The reason that is given where a more exact one would tell an open port from a closed one.
NO_CONNECTION = "Could not connect by HTTP. Details are in the log."
_PORTS = {"http": 80, "https": 443}
#: What addresses are written in (RFC 3986); all else is percent-encoded there.
_WRITTEN = re.compile(r"[!-~]*")


def check_webhook(url: str) -> None:
    """Raise RequestRefused unless it is a web address that OutboundRule allows and that does not lead to Sluice."""
    _allowed(_split(url))


def post(url: str, body: bytes, headers: dict[str, str]) -> None:
    """Send it, and look at the status of the answer.

    Raises RequestRefused when we may not, and when it is not taken within TIMEOUT.
    """
    parts = _split(url)
    addresses = _allowed(parts)
    deadline = time.monotonic() + TIMEOUT
    try:
        status = _exchange(parts, addresses, body, headers, deadline)
    except (OSError, http.client.HTTPException) as error:
        logger.info("the webhook %s: %s: %s", without_secrets(url), type(error).__name__, error)
        raise RequestRefused(_reason(error, time.monotonic() >= deadline)) from error
    if not 200 <= status < 300:
        known = status in HTTPStatus._value2member_map_
        raise RequestRefused(f"{status} {HTTPStatus(status).phrase}" if known else str(status))


def _reason(error: Exception, is_late: bool) -> str:
    """Return the error text of a failed post; `is_late`: the time limit had passed, whatever the error says."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"Certificate not trusted: {error.verify_message}"
    if is_late or isinstance(error, TimeoutError):
        return f"Timed out after {TIMEOUT:g} s"
    return NO_CONNECTION


def without_secrets(url: str) -> str:
    """Return a URL without the parts that may be secret: user, password and query."""
    return origin_of(url) + urlsplit(url).path


def origin_of(url: str) -> str:
    """Scheme and host: all that may be known by who may not use the address, as its path often is a key."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _split(url: str) -> SplitResult:
    if not _WRITTEN.fullmatch(url):
        raise RequestRefused(f"{url!r} contains invalid characters: percent-encode them")
    try:
        parts = urlsplit(url)
        is_known = parts.scheme in _PORTS and bool(parts.hostname) and _port(parts) > 0
    except ValueError:
        is_known = False
    if not is_known:
        raise RequestRefused(f"{url!r} is not an http or https URL")
    if "@" in parts.netloc:
        raise RequestRefused(f"the URL of {parts.hostname} must not contain a user or a password")
    return parts


def _port(parts: SplitResult) -> int:
    return parts.port or _PORTS[parts.scheme]


def _addresses(parts: SplitResult) -> list[str]:
    try:
        found = socket.getaddrinfo(parts.hostname, _port(parts), type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:
        logger.info("the host name of a webhook, %s: %s", parts.hostname, error)
        raise RequestRefused(f"Host {parts.hostname} not found. Check the address.") from error
    return list(dict.fromkeys(each[4][0] for each in found))


def _allowed(parts: SplitResult) -> list[str]:
    """Return the addresses of a host, resolved once. Raises RequestRefused when one of them is not allowed."""
    addresses = _addresses(parts)
    for address in addresses:
        _check(address, _port(parts))
    return addresses


def _exchange(
    parts: SplitResult, addresses: Sequence[str], body: bytes, headers: dict[str, str], deadline: float
) -> int:
    """Post a request and return the status of the response; its body is not read.

    Raises RequestRefused, OSError, HTTPException."""
    # A limit of each read alone would be none for who sends a letter a second: at the deadline the line is cut.
    with _connected(addresses, _port(parts), deadline) as plain, plain.dup() as line:
        cut = threading.Timer(_left(deadline), line.shutdown, [socket.SHUT_RDWR])
        cut.start()
        try:
            status = _status(plain, parts, body, headers)
        finally:
            cut.cancel()
    _left(deadline)  # what came until the line was cut may look like an answer
    return status


def _connected(addresses: Sequence[str], port: int, deadline: float) -> socket.socket:
    """Return a connection to the first of these addresses that answers; nothing is sent to this console itself."""
    failed = OSError("no address")
    for address in addresses:
        try:
            found = socket.create_connection((address, port), _left(deadline))
        except OSError as error:
            failed = error
            continue
        try:
            _check(found.getpeername()[0], port, found.getsockname()[0])
        except RequestRefused:
            found.close()
            raise
        return found
    raise failed


def _status(plain: socket.socket, parts: SplitResult, body: bytes, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT)
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=TIMEOUT)
        plain = ssl.create_default_context().wrap_socket(plain, server_hostname=parts.hostname)
    connection.sock = plain
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    with closing(connection):
        connection.request("POST", path, body, {**headers, "Connection": "close"})
        with closing(connection.getresponse()) as answer:
            return answer.status


def _left(deadline: float) -> float:
    """Seconds until then. Raises TimeoutError when it has passed."""
    if (left := deadline - time.monotonic()) <= 0:
        raise TimeoutError(f"not within {TIMEOUT:g} s")
    return left


def _check(text: str, port: int, ours: str = "") -> None:
    """Raise RequestRefused for an address that is not allowed, or a port of Sluice itself.

    `ours` is the local address of a connection: equal to the remote one when that is this machine.
    """
    address = plain(text)
    OutboundRule.read(settings.SLUICE.outbound).check(text)
    if (address.is_loopback or text == ours) and port in _own_ports():
        raise RequestRefused(f"port {port} of {address} belongs to Sluice itself")


def _own_ports() -> set[int | None]:
    sluice = settings.SLUICE
    ports = {sluice.console_port, sluice.http_port, sluice.monitor_port, sluice.spark_port}
    return ports | set(sluice.client_ports.values()) | {port for _, port in StoreAddress.parse(sluice.redis_url).hosts}
