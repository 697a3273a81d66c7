"""Report what is not HTTP with the address that it came from, which uvicorn's own line lacks."""

from __future__ import annotations

import logging
import time

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from brokerapp.connections.log_throttle import LogThrottle

logger = logging.getLogger(__name__)

#: All connections of the process: a port scan opens one for each of its attempts.
_reports = LogThrottle()


class ReportingHttpProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # uvicorn has one of two, as installed
    """Uvicorn's protocol of a connection, which reports what it cannot read; log_filters.py drops uvicorn's line."""

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, and report it."""
        host, port = self.client or ("unknown", 0)
        if count := _reports.count_to_report(host, time.monotonic()):
            logger.warning(
                "the client at %s:%d sent what is not HTTP%s", f"[{host}]" if ":" in host else host, port,
                f" ({count} times since this was logged last)" if count > 1 else "",
            )  # fmt: skip
        super().send_400_response(msg)
