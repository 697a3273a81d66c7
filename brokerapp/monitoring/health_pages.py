"""Decide whether a node is ready, and make the pages that tell its health. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from brokerapp.model.stats_records import NodeStatus
from brokerapp.monitoring.node_metrics import of_one_node
from brokerapp.monitoring.prometheus_text import PLAIN_TYPE

OK = "ok"
TEXT_TYPE, JSON_TYPE = "text/plain; charset=utf-8", "application/json"


@dataclass(frozen=True, slots=True)
class NodeState:
    """What decides whether a node is ready."""

    failure: str = ""  #: why it stopped, where it did
    listens: bool = False  #: for clients
    is_draining: bool = False
    store_answers: bool = False  #: the store took a heartbeat of the node, a write, within its failure timeout
    disk_shortage: str = ""  #: why the store takes no acknowledgements, where its disk is full
    is_settled: bool = False  #: it delivers from all queues that it owns


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """The state and the figures of a node. `status`: None until it has some."""

    state: NodeState
    status: NodeStatus | None = None


#: A node that is about to start.
STARTING = NodeHealth(NodeState())


def readiness_checks(state: NodeState) -> Mapping[str, str]:
    """Return the result of each check by name: `ok`, or why the node is not ready."""
    return {
        "node": state.failure or ("draining" if state.is_draining else OK),
        "listeners": OK if state.listens else "the node does not listen for clients",
        "store": state.disk_shortage or (OK if state.store_answers else "the store takes no writes of this node"),
        "queues": OK if state.is_settled else "the node does not deliver from all queues that it owns yet",
    }


@dataclass(frozen=True, slots=True)
class Page:
    """An answer to a request."""

    status: HTTPStatus
    type: str
    body: str


def _healthz(_health: NodeHealth) -> Page:
    return Page(HTTPStatus.OK, TEXT_TYPE, "ok\n")


def _readyz(health: NodeHealth) -> Page:
    checks = readiness_checks(health.state)
    is_ready = all(each == OK for each in checks.values())
    body = json.dumps({"ready": is_ready, **checks}) + "\n"
    return Page(HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE, JSON_TYPE, body)


def _metrics(health: NodeHealth) -> Page:
    if health.status is None:
        return Page(HTTPStatus.SERVICE_UNAVAILABLE, TEXT_TYPE, "the node has no figures yet: it starts\n")
    return Page(HTTPStatus.OK, PLAIN_TYPE, "".join(of_one_node(health.status)))


#: Pages by path.
PAGES: dict[str, Callable[[NodeHealth], Page]] = {"/healthz": _healthz, "/readyz": _readyz, "/metrics": _metrics}
METHODS = ("GET", "HEAD")


def page_of(method: str, target: str, health: NodeHealth) -> Page:
    """Return the answer to a request for a target, whose query is ignored."""
    make = PAGES.get(target.partition("?")[0])
    if make is None:
        return Page(HTTPStatus.NOT_FOUND, TEXT_TYPE, f"not found; pages are {', '.join(PAGES)}\n")
    if method not in METHODS:
        return Page(HTTPStatus.METHOD_NOT_ALLOWED, TEXT_TYPE, f"allowed methods are {', '.join(METHODS)}\n")
    return make(health)
