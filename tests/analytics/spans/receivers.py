"""Receivers of spans: the SDK's exporter to memory, and a server of OTLP/HTTP that reads what requests contain."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from analytics.spans.otlp_delivery import Delivery


class MemoryReceiver:
    """Keeps spans in the SDK's exporter to memory; what `outcomes` lists is what becomes of the first requests."""

    def __init__(self, *outcomes: Delivery) -> None:
        self.outcomes, self.requests, self._memory = list(outcomes), 0, InMemorySpanExporter()

    def send(self, spans: Sequence[ReadableSpan]) -> Delivery:
        self.requests += 1
        outcome = self.outcomes.pop(0) if self.outcomes else Delivery.ACCEPTED
        if outcome is Delivery.ACCEPTED:
            assert self._memory.export(spans) is SpanExportResult.SUCCESS
        return outcome

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self._memory.get_finished_spans()


class OtlpServer:
    """Requests that came, and the status with which the next ones are answered."""

    def __init__(self, url: str) -> None:
        self.url, self.requests, self.paths = url, [], []
        self.headers: list[dict[str, str]] = []
        self.statuses: list[int] = []

    @property
    def spans(self) -> list[Span]:
        """Every span that was accepted."""
        return [
            span
            for request in self.requests
            for of_resource in request.resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        ]


@contextmanager
def otlp_server() -> Iterator[OtlpServer]:
    """A server on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status = found.statuses.pop(0) if found.statuses else 200
            if status == 200:
                found.paths.append(self.path)
                found.headers.append({name.lower(): value for name, value in self.headers.items()})
                found.requests.append(ExportTraceServiceRequest.FromString(body))
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(status)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = OtlpServer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
