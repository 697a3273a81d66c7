"""Keep log records that any client can cause in one line: no line breaks of theirs, and no traceback."""

from __future__ import annotations

import logging
import re

#: Characters of a host name that the log gets: a request may claim any.
MAX_HOST = 100
#: Characters that begin a new line, or that a terminal takes as a command.
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")


class OneLineFormatter(logging.Formatter):
    """Write a record with its date as one line, whatever names clients give to things; a traceback follows below."""

    def __init__(self, line: str = "%(asctime)s %(levelname)-7s %(name)s: %(message)s") -> None:
        super().__init__(line, "%Y-%m-%d %H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line with control characters escaped."""
        return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], super().formatMessage(record))


class DisallowedHostFilter(logging.Filter):
    """Shorten Django's report of a disallowed host to a line that says what to set."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Shorten the record of a request with a foreign Host header to one line without a traceback."""
        about = getattr(getattr(record, "request", None), "META", {})
        host, address = ascii(about.get("HTTP_HOST", ""))[:MAX_HOST], about.get("REMOTE_ADDR", "unknown")
        record.msg = f"request from {address} for host {host} rejected: the host is not in SLUICE_HOSTS"
        record.args, record.exc_info, record.exc_text = (), None, None
        return True


class InvalidRequestFilter(logging.Filter):
    """Drop uvicorn's report of what is not HTTP: http_protocol.py makes one with the address of the client."""

    LINE = "Invalid HTTP request received."

    def filter(self, record: logging.LogRecord) -> bool:
        """Return False for that line."""
        return record.msg != self.LINE
