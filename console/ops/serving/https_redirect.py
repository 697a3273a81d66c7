"""Lead browsers from HTTP to HTTPS, and refuse what must not have been sent without encryption."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus

import h11
from django.http.request import split_domain_port, validate_host

#: Bytes of a request line with its headers: more than uvicorn's parsers take.
REQUEST_BYTES = 64 * 1024
#: Seconds for a whole request and its answer.
REQUEST_SECONDS = 10.0
HTTPS_PORT = 443

#: What may be led elsewhere: a request that says nothing secret, and that the browser repeats as it was.
_SAFE_METHODS = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Answer:
    """A response without a body of its own: `sentence` is shown by programs; browsers follow `location`."""

    status: HTTPStatus
    sentence: str
    location: str = ""


def answer_to(
    method: str, target: str, headers: Sequence[tuple[bytes, bytes]], allowed_hosts: Sequence[str], port: int | None
) -> Answer:
    """Return where a request is led to: the same host and path by HTTPS, at `port`, or None: at the port it came to.

    Requests with other methods and with credentials are refused: a client that sends its token unencrypted and is then
    redirected works, and nobody notices.
    """
    values = [value.decode("latin-1") for name, value in headers if name == b"host"]
    host, host_port = split_domain_port(values[0]) if len(values) == 1 else ("", "")
    if not host or not validate_host(host, list(allowed_hosts)):
        return Answer(HTTPStatus.BAD_REQUEST, "SLUICE_HOSTS does not include the host name of this request.")
    if not target.startswith("/"):
        return Answer(HTTPStatus.BAD_REQUEST, "The path of this request must start with a slash.")
    wanted = host_port if port is None else str(port)
    where = f"https://{host}" + (f":{wanted}" if wanted and wanted != str(HTTPS_PORT) else "")
    if method not in _SAFE_METHODS or any(name == b"authorization" for name, _ in headers):
        return Answer(HTTPStatus.FORBIDDEN, f"This request was sent without encryption. Use {where}/ instead.")
    return Answer(HTTPStatus.PERMANENT_REDIRECT, f"Use {where}/ instead.", where + target)


class HttpsRedirect(asyncio.Protocol):
    """A connection of a client that does not speak TLS: one request is answered."""

    def __init__(self, allowed_hosts: Sequence[str], port: int | None) -> None:
        self._allowed_hosts, self._port = allowed_hosts, port
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=REQUEST_BYTES)
        self._is_answered = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._timeout = asyncio.get_running_loop().call_later(REQUEST_SECONDS, transport.abort)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        """Read until there is a request, and answer it; what follows it is read and dropped."""
        if self._is_answered:
            return
        method = ""
        try:
            self._parser.receive_data(data)
            event = self._parser.next_event()
            if event is h11.NEED_DATA:
                return
            if not isinstance(event, h11.Request):
                self._transport.close()
                return
            method = event.method.decode()
            target = event.target.decode("latin-1")
            answer = answer_to(method, target, list(event.headers), self._allowed_hosts, self._port)
        except h11.RemoteProtocolError as error:
            answer = Answer(HTTPStatus(error.error_status_hint), f"{error}.")
        self._write(answer, has_body=method != "HEAD")

    def _write(self, answer: Answer, *, has_body: bool) -> None:
        self._is_answered = True
        body = f"{answer.sentence}\n".encode()
        headers = [
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
        ]
        if answer.location:
            headers.append(("Location", answer.location))
        response = h11.Response(status_code=answer.status, reason=answer.status.phrase, headers=headers)
        self._transport.write((self._parser.send(response) or b"") + (body if has_body else b""))
        self._transport.write_eof()  # closed once the client has done so: what it sent besides would reset it before

    def eof_received(self) -> None:
        """Close: the client is done."""

    def connection_lost(self, _error: Exception | None) -> None:
        self._timeout.cancel()


def redirecting(allowed_hosts: Sequence[str], port: int | None = None) -> Callable[[], HttpsRedirect]:
    """Return what makes the protocol of a connection."""
    return lambda: HttpsRedirect(allowed_hosts, port)
