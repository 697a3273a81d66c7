"""Deliver spans over OTLP/HTTP, and tell whether a failure is for good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

#: Answers of a client's fault that pass: too slow, too often.
_PASSING = (408, 429)


class Delivery(Enum):
    """What became of a request."""

    ACCEPTED = "accepted"
    REFUSED = "refused"  #: for good: sending it again would not help
    FAILED = "failed"  #: the receiver cannot be reached, or not now


class OtlpDelivery:
    """Sends spans to the receiver that the environment names, with the SDK's exporter: TLS, compression.

    Without `headers` the SDK takes those of the environment.
    """

    def __init__(self, headers: Mapping[str, str] | None = None) -> None:
        self._status: int | None = None
        session = requests.Session()
        session.hooks["response"].append(self._note)
        self._exporter: SpanExporter = OTLPSpanExporter(headers=headers or None, session=session)

    def _note(self, response: requests.Response, *_args: object, **_options: object) -> None:
        self._status = response.status_code

    def send(self, spans: Sequence[ReadableSpan]) -> Delivery:
        """Send these spans in one request; the SDK repeats it for some seconds where that may help."""
        self._status = None
        if self._exporter.export(spans) is SpanExportResult.SUCCESS:
            return Delivery.ACCEPTED
        is_refused = self._status is not None and 400 <= self._status < 500 and self._status not in _PASSING
        return Delivery.REFUSED if is_refused else Delivery.FAILED

    def close(self) -> None:
        """End a request that is repeated, and close the connection."""
        self._exporter.shutdown()
