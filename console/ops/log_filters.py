"""Shorten log records that any client can cause to one line without a traceback."""

from __future__ import annotations

import logging

#: Characters of a host name that the log gets: a request may claim any.
MAX_HOST = 100


class DisallowedHostFilter(logging.Filter):
    """Shorten Django's report of a disallowed host to a line that says what to set."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Shorten the record of a request with a foreign Host header to one line without a traceback."""
        about = getattr(getattr(record, "request", None), "META", {})
        host, address = ascii(about.get("HTTP_HOST", ""))[:MAX_HOST], about.get("REMOTE_ADDR", "unknown")
        record.msg = f"request from {address} for host {host} rejected: the host is not in SLUICE_HOSTS"
        record.args, record.exc_info, record.exc_text = (), None, None
        return True
