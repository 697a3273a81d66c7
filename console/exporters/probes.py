"""Answer liveness and readiness probes without authentication."""

from __future__ import annotations

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse

from brokerapp.errors import BrokerError
from console.broker.gateway import gateway

#: Seconds a probe waits for the store.
PATIENCE = 2.0
NO_STORE = {"Cache-Control": "no-store"}


def healthz(request: HttpRequest) -> HttpResponse:
    """Answer 200 while the process runs."""
    return HttpResponse("ok", content_type="text/plain; charset=utf-8", headers=NO_STORE)


def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 when store, database and a broker node are available, else 503; with the state of each."""
    found = {"store": _store(), "database": _database(), "node": "not checked: the store is unavailable"}
    if found["store"] == "ok":
        found["node"] = _node()
    is_ready = all(each == "ok" for each in found.values())
    return JsonResponse({"ready": is_ready, **found}, status=200 if is_ready else 503, headers=NO_STORE)


def _store() -> str:
    try:
        gateway().run(gateway().admin.history(limit=1), PATIENCE)
    except BrokerError as error:
        return str(error)
    return "ok"


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return str(error)
    return "ok"


def _node() -> str:
    try:
        nodes = gateway().run(gateway().admin.nodes(), PATIENCE)
    except BrokerError as error:
        return str(error)
    return "ok" if nodes else "no broker node is running"
