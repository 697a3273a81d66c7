"""Webhooks: posts to web addresses that people give, and to none that would lead back in or to a cloud's metadata.

An address is checked when somebody gives it, by its name, and again on the connection itself, before anything is sent:
a name may stand for another machine by then.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from brokerapp.errors import RequestRefused

#: Seconds a webhook has to answer, and bytes of its answer that are read.
TIMEOUT, MAX_ANSWER = 5.0, 2_000
#: Where clouds tell a machine its keys, beside the link-local addresses.
METADATA = frozenset({"fd00:ec2::254", "100.100.100.200"})


def check_webhook(url: str) -> None:
    """Raise RequestRefused for an address that we send nothing to: no web address, ourselves, or a cloud's metadata."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RequestRefused(f"{url!r} is no http or https address")
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        found = {each[4][0] for each in socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)}
    except (OSError, ValueError) as error:
        raise RequestRefused(f"{parts.hostname} is not known here: {error}") from error
    for address in found:
        _check(address, port)


def post(url: str, body: bytes, headers: dict[str, str]) -> None:
    """Send it. Raises RequestRefused when we may not, or when it is not taken; OSError when nobody is there."""
    check_webhook(url)
    request = urllib.request.Request(url, body, headers, method="POST")
    try:
        with _OPENER.open(request, timeout=TIMEOUT) as answer:
            answer.read(MAX_ANSWER)
    except urllib.error.HTTPError as error:
        raise RequestRefused(f"{error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise OSError(f"no connection: {getattr(error.reason, 'strerror', None) or error.reason}") from error


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


class _Checked:
    """A connection that looks who is at its other end before it sends anything."""

    def connect(self) -> None:
        super().connect()
        try:
            _check(self.sock.getpeername()[0], self.port, self.sock.getsockname()[0])
        except RequestRefused:
            self.close()
            raise


class _Plain(_Checked, http.client.HTTPConnection):
    pass


class _Secure(_Checked, http.client.HTTPSConnection):
    pass


class _Http(urllib.request.HTTPHandler):
    def http_open(self, request: Any) -> Any:
        return self.do_open(_Plain, request)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, request: Any) -> Any:
        return self.do_open(_Secure, request)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Where a webhook is redirected to nobody has checked."""

    def redirect_request(self, *args: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_Http, _Https, _NoRedirects, urllib.request.ProxyHandler({}))
