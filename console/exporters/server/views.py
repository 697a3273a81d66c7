"""Serve the monitoring endpoints as Django views."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET

from analytics.spans.progress import ExportProgress, read_progress, spans_folder
from brokerapp.model.destination import DestinationKind
from brokerapp.monitoring.prometheus_text import OPEN_TYPE, PLAIN_TYPE
from console.access.permissions import Permission, visible
from console.exporters.jolokia import agent as jolokia
from console.exporters.jolokia import operations
from console.exporters.jolokia.beans import Bean, Beans
from console.exporters.jolokia.errors import DENIED, BadRequest
from console.exporters.jolokia.request_path import split, split_decoded
from console.exporters.options import MonitorOptions
from console.exporters.prometheus import exposition
from console.exporters.server import xml_pages
from console.exporters.server.access_control import access_required, origin_allowed
from console.exporters.stats_cache import StatsReading, stats_cache

#: Requests in one POST: Telegraf sends some tens.
MAX_BULK = 1_000
#: Bytes of a POST.
MAX_BODY = 1_000_000
XML = "text/xml; charset=utf-8"


def options() -> MonitorOptions:
    """Return the options of the installation."""
    return settings.MONITOR


def _reading(request: HttpRequest) -> StatsReading:
    """Return the statistics that this user may see."""
    return stats_cache().read().seen_by(visible(request.user, Permission.METRICS))


def _beans(request: HttpRequest) -> Beans:
    return Beans(_reading(request), options(), settings.SLUICE.broker_name)


def _streamed(request: HttpRequest, pieces: Iterable[str], content_type: str) -> StreamingHttpResponse:
    """Stream the pieces as they are created."""

    async def stream() -> AsyncIterator[str]:
        for piece in pieces:
            yield piece

    is_async = isinstance(request, ASGIRequest)
    return StreamingHttpResponse(stream() if is_async else pieces, content_type=content_type)


# -- ActiveMQ's XML pages


@require_GET
@access_required
def queues_jsp(request: HttpRequest) -> HttpResponse:
    """Serve all queues."""
    return _streamed(request, xml_pages.queues_page(_reading(request).of_kind(DestinationKind.QUEUE)), XML)


@require_GET
@access_required
def topics_jsp(request: HttpRequest) -> HttpResponse:
    """Serve all topics, including advisory topics."""
    return _streamed(
        request, xml_pages.topics_page(_reading(request).of_kind(DestinationKind.TOPIC), options().topic_blank), XML
    )


@require_GET
@access_required
def subscribers_jsp(request: HttpRequest) -> HttpResponse:
    """Serve all durable subscriptions."""
    return _streamed(request, xml_pages.subscribers_page(_beans(request).consumers), XML)


# -- Prometheus


def _measured(request: HttpRequest) -> Beans:
    """Return beans with all data loaded: while a page is streamed the store must not be asked."""
    beans = _beans(request)
    _ = beans.reading.used, beans.reading.definitions
    return beans


def _span_export() -> ExportProgress | None:
    """Return the progress of the export of spans; None where it is off or never ran."""
    environment = settings.SLUICE
    if not environment.exports_spans:
        return None
    return read_progress(spans_folder(environment.data, environment.broker_name))


@require_GET
@access_required
def metrics(request: HttpRequest) -> HttpResponse:
    """Serve metrics for Prometheus with the names of ActiveMQ's dashboards."""
    pieces = exposition.plain(_measured(request), request.GET.getlist("destination"), _span_export())
    return _streamed(request, pieces, PLAIN_TYPE)


@require_GET
@access_required
def open_metrics(request: HttpRequest) -> HttpResponse:
    """Serve metrics in the OpenMetrics format."""
    pieces = exposition.open_metrics(_measured(request), request.GET.getlist("destination"), _span_export())
    return _streamed(request, pieces, OPEN_TYPE)


# -- Jolokia


@csrf_exempt
@access_required
def jolokia_agent(request: HttpRequest, path: str = "") -> HttpResponse:
    """Answer one Jolokia request of a path, or one or many of a body."""
    if request.method not in ("GET", "POST"):
        return HttpResponse(f"{request.method} is not allowed: GET or POST", status=405, headers={"Allow": "GET, POST"})
    if not origin_allowed(request, options()):
        origin = request.headers.get("Origin", "")
        sentence = f"Origin {origin} is not allowed to call this agent" if origin else "An Origin header is required"
        failed = {"status": 403, "error": f"java.lang.Exception : {sentence}", "error_type": DENIED}
        return _document(failed | {".error": True})
    try:
        asked = _by_path(request) if request.method == "GET" else _by_body(request)
    except BadRequest as error:
        return HttpResponse(str(error), status=400, content_type="text/plain; charset=utf-8")
    agent = _agent(request)
    if isinstance(asked, list):
        return _document([agent.answer(each) for each in asked])
    return _document(agent.answer(asked))


def _agent(request: HttpRequest) -> jolokia.JolokiaAgent:
    caller = operations.Caller(request, _beans(request))

    def execute(bean: Bean, operation: str, arguments: Any) -> Any:
        return operations.execute(caller, bean, operation, arguments)

    return jolokia.JolokiaAgent(caller.beans, execute)


def _by_path(request: HttpRequest) -> jolokia.JolokiaRequest:
    carried = request.GET.get("p")
    parts = split_decoded(carried) if carried is not None else split(_raw_path(request))
    return jolokia.request_from_path(parts, request.GET.dict())


def _raw_path(request: HttpRequest) -> str:
    """Return the percent-encoded path after /api/jolokia."""
    scope = getattr(request, "scope", {})
    raw = scope["raw_path"].decode("latin-1") if scope.get("raw_path") else quote(request.path)
    return raw.partition("?")[0].partition("/api/jolokia")[2]


def _by_body(request: HttpRequest) -> jolokia.JolokiaRequest | list[jolokia.JolokiaRequest]:
    if len(request.body) > MAX_BODY:
        raise BadRequest(f"a body can have at most {MAX_BODY:,} bytes")
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not valid JSON: {error}") from error
    given = request.GET.dict()
    if not isinstance(body, list):
        return jolokia.request_from_body(body, given)
    if len(body) > MAX_BULK:
        raise BadRequest(f"a body can have at most {MAX_BULK:,} requests")
    return [jolokia.request_from_body(each, given) for each in body]


def _document(document: Any) -> HttpResponse:
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return HttpResponse(text, content_type="application/json; charset=utf-8")
