"""Webhooks: posts to web addresses that people give, and to none that would lead back in or to a cloud's metadata.

An address is checked when somebody gives it, by its name, and again on the connection itself, before anything is sent:
a name may stand for another machine by then. Of one that did not take a post only the status is told, or that there was
no answer: nobody shall find out by it what else answers there. The log has the rest.
"""

from __future__ import annotations

import http.client
import ipaddress
import logging
import re
import socket
import ssl
import threading
import time
from contextlib import closing
from http import HTTPStatus
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from brokerapp.errors import RequestRefused

logger = logging.getLogger(__name__)

#: Seconds a webhook has for all of it: to be reached, to take the post, and to answer.
TIMEOUT = 5.0
#: Where clouds tell a machine its keys, beside the link-local addresses.
METADATA = frozenset({"fd00:ec2::254", "100.100.100.200"})
_PORTS = {"http": 80, "https": 443}
#: What addresses are written in (RFC 3986); all else is percent-encoded there.
_WRITTEN = re.compile(r"[!-~]*")


def check_webhook(url: str) -> None:
    """Raise RequestRefused for an address that we send nothing to: no web address, ourselves, or a cloud's metadata."""
    parts = _split(url)
    for address in _addresses(parts):
        _check(address, _port(parts))


def post(url: str, body: bytes, headers: dict[str, str]) -> None:
    """Send it, and look at the status of the answer.

    Raises RequestRefused when we may not, and when it is not taken within TIMEOUT.
    """
    check_webhook(url)
    try:
        status = _exchange(_split(url), body, headers)
    except (OSError, http.client.HTTPException) as error:
        logger.info("the webhook %s: %s: %s", bare(url), type(error).__name__, error)
        raise RequestRefused("no answer") from error
    if not 200 <= status < 300:
        known = status in HTTPStatus._value2member_map_
        raise RequestRefused(f"{status} {HTTPStatus(status).phrase}" if known else str(status))


def bare(url: str) -> str:
    """An address without what is no part of the place and may be a key: user, password, query."""
    return place_of(url) + urlsplit(url).path


def place_of(url: str) -> str:
    """Scheme and host: all that may be known by who may not use the address, as its path often is a key."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _split(url: str) -> SplitResult:
    if not _WRITTEN.fullmatch(url):
        raise RequestRefused(f"{url!r} holds what stands in no address, such as a blank: write it percent-encoded")
    try:
        parts = urlsplit(url)
        is_known = parts.scheme in _PORTS and bool(parts.hostname) and _port(parts) > 0
    except ValueError:
        is_known = False
    if not is_known:
        raise RequestRefused(f"{url!r} is no http or https address")
    if "@" in parts.netloc:
        raise RequestRefused(
            f"the address of {parts.hostname} has a user or a password: leave them out, all that is sent is signed"
        )
    return parts


def _port(parts: SplitResult) -> int:
    return parts.port or _PORTS[parts.scheme]


def _addresses(parts: SplitResult) -> list[str]:
    try:
        found = socket.getaddrinfo(parts.hostname, _port(parts), type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:
        raise RequestRefused(f"{parts.hostname} is not known here: {error}") from error
    return list(dict.fromkeys(each[4][0] for each in found))


def _exchange(parts: SplitResult, body: bytes, headers: dict[str, str]) -> int:
    """The status of the answer to a post; its body is not read. Raises RequestRefused, OSError, HTTPException."""
    deadline = time.monotonic() + TIMEOUT
    # A limit of each read alone would be none for who sends a letter a second: at the deadline the line is cut.
    with _connected(parts, deadline) as plain, plain.dup() as line:
        cut = threading.Timer(_left(deadline), line.shutdown, [socket.SHUT_RDWR])
        cut.start()
        try:
            status = _status(plain, parts, body, headers)
        finally:
            cut.cancel()
    _left(deadline)  # what came until the line was cut may look like an answer
    return status


def _connected(parts: SplitResult, deadline: float) -> socket.socket:
    """A connection to the first of its addresses that answers, which was looked at before anything is sent."""
    failed = OSError("no address")
    for address in _addresses(parts):
        try:
            found = socket.create_connection((address, _port(parts)), _left(deadline))
        except OSError as error:
            failed = error
            continue
        try:
            _check(found.getpeername()[0], _port(parts), found.getsockname()[0])
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
    """`ours` is the address of our own end of a connection: the same as the other's when that is this machine."""
    address = ipaddress.ip_address(text.partition("%")[0])
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_link_local or address.is_multicast or address.is_unspecified or str(address) in METADATA:
        raise RequestRefused(f"{address} is no address to send alerts to")
    if (address.is_loopback or text == ours) and port in _own_ports():
        raise RequestRefused(f"port {port} of {address} is Sluice itself: an alert would go round")


def _own_ports() -> set[int | None]:
    sluice = settings.SLUICE
    ports = {sluice.console_port, sluice.monitor_port, sluice.stomp_port, sluice.spark_port}
    return ports | set(sluice.extra_ports.values()) | {urlsplit(sluice.redis_url).port}
