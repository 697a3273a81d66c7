"""Define operations of beans: their signatures, permissions and effects.

Those that only read are open to whoever has the right to what they read. Those that change something are closed unless
the installation opens them (SLUICE_MONITOR_EXEC=all), need the right that the console would ask for, and leave an entry
in the audit trail.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from brokerapp.engine.routing.destination_trie import matches
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination, DestinationKind, check_one
from brokerapp.model.stats_records import DestinationStats
from console.access.masking import check_selector, mask_message
from console.access.permissions import has_permission, missing_permission_message, permission_message, visible
from console.access.roles import Permission, everything
from console.audit import trail
from console.broker.gateway import LONG_PATIENCE, gateway
from console.exporters.jolokia import health
from console.exporters.jolokia.beans import Bean, Beans
from console.exporters.jolokia.client_beans import ConsumerBean
from console.exporters.jolokia.destination_queries import query
from console.exporters.jolokia.errors import DENIED, ILLEGAL, JolokiaError
from console.exporters.jolokia.jms_messages import as_data

TEXT, INT, BOOLEAN, VOID = "java.lang.String", "int", "boolean", "void"
COMPOSITES, TABLE = "[Ljavax.management.openmbean.CompositeData;", "javax.management.openmbean.TabularData"
COMPOSITE = "javax.management.openmbean.CompositeData"

#: Messages of one browse; ActiveMQ's maxBrowsePageSize.
MAX_BROWSED = 400


@dataclass(frozen=True, slots=True)
class Caller:
    """Hold the request and the beans of an execution."""

    request: HttpRequest
    beans: Beans


@dataclass(frozen=True, slots=True)
class BeanOperation:
    """Describe one signature of an operation."""

    name: str
    arguments: tuple[tuple[str, str], ...]  #: name, Java's type
    returns: str
    description: str
    permission: Permission
    run: Callable[..., Any]  #: with the caller, the bean's subject, and the arguments
    changes: bool = False

    def described(self) -> dict[str, Any]:
        """Return the description for `list`."""
        arguments = [{"name": name, "type": type, "desc": name} for name, type in self.arguments]
        return {"args": arguments, "ret": self.returns, "desc": self.description}


def execute(caller: Caller, bean: Bean, signature: str, arguments: Sequence[Any]) -> Any:
    """Run an operation; `signature` is its name, optionally with types in parentheses."""
    name = signature.partition("(")[0]
    named = [each for each in OPERATIONS.get(bean.kind, ()) if each.name == name]
    fitting = next((each for each in named if len(each.arguments) == len(arguments)), None)
    if not named:
        raise JolokiaError(400, ILLEGAL, f"No operation {name} found on MBean {bean.name}")
    if fitting is None:
        counts = " or ".join(str(len(each.arguments)) for each in named)
        raise JolokiaError(400, ILLEGAL, f"Operation {name} takes {counts} arguments, not {len(arguments)}")
    _check(caller, bean, fitting)
    texts = [str(each) if each is not None else "" for each in arguments]
    if not fitting.changes:
        return fitting.run(caller, bean.subject, *texts)
    with trail.recording(caller.request, f"jmx {name}", bean.name, before={"arguments": texts}) as change:
        result = fitting.run(caller, bean.subject, *texts)
        change.after = {"result": result}
    return result


def _check(caller: Caller, bean: Bean, operation: BeanOperation) -> None:
    """Raise JolokiaError when the operation is disabled or the user lacks the permission."""
    if operation.changes and not caller.beans.options.exec_all:
        raise JolokiaError(
            403, DENIED, f"Operation {operation.name} is not allowed: set SLUICE_MONITOR_EXEC=all to enable it"
        )
    if operation.changes and caller.request.method != "POST":
        raise JolokiaError(403, DENIED, f"Operation {operation.name} changes state: send it with POST")
    for destination in _about(bean.subject) if operation.permission is not Permission.METRICS else [None]:
        if not has_permission(caller.request.user, operation.permission, destination):
            reason = missing_permission_message(caller.request.user, operation.permission, destination)
            trail.record_denied(caller.request, f"jmx {operation.name}", bean.name, reason)
            raise JolokiaError(403, DENIED, reason)


def _about(subject: Any) -> list[Destination | None]:
    """Return the destinations that need the permission: all topics of a subscription; None for anywhere."""
    match subject:
        case DestinationStats():
            return [subject.destination]
        case ConsumerBean():
            return list(subject.kept.subscription.topics if subject.kept else subject.destinations)
    return [None]


# -- what they do


def _browse(caller: Caller, stats: DestinationStats, selector: str = "") -> list[dict[str, Any]]:
    check_selector(caller.request.user, selector, stats.destination)
    page = gateway().browse(stats.destination, 0, MAX_BROWSED, selector or None)
    return [as_data(mask_message(caller.request.user, each, stats.destination)) for each in page.messages]


def _table(caller: Caller, stats: DestinationStats, selector: str = "") -> dict[str, Any]:
    return {each["JMSMessageID"]: each for each in _browse(caller, stats, selector)}


def _message(caller: Caller, stats: DestinationStats, id: str) -> dict[str, Any] | None:
    selector = f"JMSMessageID = '{id.replace(chr(39), chr(39) * 2)}'"
    found = gateway().browse(stats.destination, 0, 1, selector).messages
    return as_data(mask_message(caller.request.user, found[0], stats.destination)) if found else None


def _purge(caller: Caller, stats: DestinationStats) -> None:
    gateway().purge(stats.destination)


def _pause(paused: bool) -> Callable[[Caller, DestinationStats], None]:
    return lambda caller, stats: gateway().pause(stats.destination, paused)


def _call_broker(call: Any) -> Any:
    return gateway().run(call, LONG_PATIENCE)


def _remove(caller: Caller, stats: DestinationStats, id: str) -> bool:
    return _call_broker(gateway().admin.remove(stats.destination, ids=[id])) > 0


def _remove_matching(caller: Caller, stats: DestinationStats, selector: str) -> int:
    check_selector(caller.request.user, selector, stats.destination)
    return _call_broker(gateway().admin.remove(stats.destination, selector=selector or None))


def _transfer(action: str, by: str) -> Callable[[Caller, DestinationStats, str, str], Any]:
    """Move or copy messages by their id or by a selector."""

    def transfer(caller: Caller, stats: DestinationStats, which: str, target: str) -> Any:
        where = Destination.parse(target)
        if not has_permission(caller.request.user, Permission.BULK, where):
            raise JolokiaError(403, DENIED, missing_permission_message(caller.request.user, Permission.BULK, where))
        if by == "selector":
            check_selector(caller.request.user, which, stats.destination)
        chosen = {"ids": [which]} if by == "id" else {"selector": which or None}
        count = _call_broker(getattr(gateway().admin, action)(stats.destination, where, **chosen))
        return count > 0 if by == "id" else count

    return transfer


def _require_everywhere(caller: Caller, permission: Permission) -> None:
    """Raise Failure without the right everywhere: where a message returns to, only it says."""
    if visible(caller.request.user, permission) is not everything:
        raise JolokiaError(
            403, DENIED, permission_message(permission, "all destinations: messages return to wherever they failed")
        )


def _retry(caller: Caller, stats: DestinationStats, id: str) -> bool:
    _require_everywhere(caller, Permission.RESUBMIT)
    return _call_broker(gateway().admin.resubmit(stats.destination, ids=[id])) > 0


def _retry_all(caller: Caller, stats: DestinationStats) -> int:
    _require_everywhere(caller, Permission.BULK)
    return _call_broker(gateway().admin.resubmit(stats.destination))


def _create(kind: DestinationKind) -> Callable[[Caller, Any, str], None]:
    return lambda caller, broker, name: gateway().create(_check_creatable(caller, Destination(kind, name)))


def _delete(kind: DestinationKind) -> Callable[[Caller, Any, str], None]:
    def delete(caller: Caller, broker: Any, name: str) -> None:
        gateway().delete(_check_creatable(caller, Destination(kind, name)))

    return delete


def _check_creatable(caller: Caller, destination: Destination) -> Destination:
    check_one(destination)
    if not has_permission(caller.request.user, Permission.CREATE, destination):
        raise JolokiaError(403, DENIED, missing_permission_message(caller.request.user, Permission.CREATE, destination))
    return destination


def _query(kind: DestinationKind) -> Callable[[Caller, Any, str, str, str], str]:
    def run(caller: Caller, broker: Any, text: str, page: str, size: str) -> str:
        if not (page.isdecimal() and size.isdecimal()):
            raise RequestRefused(f"page {page!r} and pageSize {size!r} must be whole numbers")
        return json.dumps(query(caller.beans, kind, text, int(page), int(size)))

    return run


def _health(caller: Caller, reading: Any) -> list[dict[str, str]]:
    found = health.conditions(reading)
    return [
        {"healthId": each.id, "level": each.level, "message": each.message, "resource": each.resource} for each in found
    ]


def _status(caller: Caller, reading: Any) -> str:
    return health.status(health.conditions(reading))


def _matches(kind: DestinationKind) -> Callable[[Caller, ConsumerBean, str], bool]:
    return lambda caller, each, name: any(
        topic.kind is kind and matches(topic.name, name) for topic in each.destinations
    )


def _destroy(caller: Caller, each: ConsumerBean) -> None:
    gateway().delete(each.kept.numbers.destination)


_ID, _SELECTOR, _TARGET = ("messageId", TEXT), ("selector", TEXT), ("destinationName", TEXT)
_NAME = ("name", TEXT)
_QUEUE, _TOPIC = DestinationKind.QUEUE, DestinationKind.TOPIC
_FILTER = (("filter", TEXT), ("page", INT), ("pageSize", INT))

_MATCHING = (
    BeanOperation(
        "isMatchingQueue",
        (_NAME,),
        BOOLEAN,
        "is it fed from there",
        Permission.METRICS,
        _matches(DestinationKind.QUEUE),
    ),
    BeanOperation(
        "isMatchingTopic",
        (_NAME,),
        BOOLEAN,
        "is it fed from there",
        Permission.METRICS,
        _matches(DestinationKind.TOPIC),
    ),
)

#: By kind of bean.
OPERATIONS: dict[str, tuple[BeanOperation, ...]] = {
    "broker": (
        BeanOperation("queryQueues", _FILTER, TEXT, "queues, filtered and paged", Permission.METRICS, _query(_QUEUE)),
        BeanOperation("queryTopics", _FILTER, TEXT, "topics, filtered and paged", Permission.METRICS, _query(_TOPIC)),
        BeanOperation("addQueue", (_NAME,), VOID, "create a queue", Permission.CREATE, _create(_QUEUE), changes=True),
        BeanOperation("addTopic", (_NAME,), VOID, "create a topic", Permission.CREATE, _create(_TOPIC), changes=True),
        BeanOperation(
            "removeQueue", (_NAME,), VOID, "delete a queue", Permission.CREATE, _delete(_QUEUE), changes=True
        ),
        BeanOperation(
            "removeTopic", (_NAME,), VOID, "delete a topic", Permission.CREATE, _delete(_TOPIC), changes=True
        ),
    ),
    "queue": (
        BeanOperation("browse", (), COMPOSITES, "the first messages", Permission.BROWSE, _browse),
        BeanOperation("browse", (_SELECTOR,), COMPOSITES, "the first messages that match", Permission.BROWSE, _browse),
        BeanOperation("browseAsTable", (), TABLE, "the first messages by id", Permission.BROWSE, _table),
        BeanOperation("browseAsTable", (_SELECTOR,), TABLE, "the first messages that match", Permission.BROWSE, _table),
        BeanOperation("getMessage", (_ID,), COMPOSITE, "one message", Permission.BROWSE, _message),
        BeanOperation("purge", (), VOID, "purge all messages", Permission.REMOVE, _purge, changes=True),
        BeanOperation("pause", (), VOID, "pause delivery", Permission.PAUSE, _pause(True), changes=True),
        BeanOperation("resume", (), VOID, "resume delivery", Permission.PAUSE, _pause(False), changes=True),
        BeanOperation("removeMessage", (_ID,), BOOLEAN, "remove one message", Permission.REMOVE, _remove, changes=True),
        BeanOperation(
            "removeMatchingMessages",
            (_SELECTOR,),
            INT,
            "remove messages",
            Permission.REMOVE,
            _remove_matching,
            changes=True,
        ),
        *(
            BeanOperation(
                name,
                (which, _TARGET),
                returns,
                f"{action} messages",
                Permission.BULK,
                _transfer(action, by),
                changes=True,
            )
            for action in ("move", "copy")
            for name, which, returns, by in (
                (f"{action}MessageTo", _ID, BOOLEAN, "id"),
                (f"{action}MatchingMessagesTo", _SELECTOR, INT, "selector"),
            )
        ),
        BeanOperation(
            "retryMessage", (_ID,), BOOLEAN, "resubmit a dead letter", Permission.RESUBMIT, _retry, changes=True
        ),
        BeanOperation("retryMessages", (), INT, "resubmit all dead letters", Permission.BULK, _retry_all, changes=True),
    ),
    "consumer": _MATCHING,
    "topic-consumer": _MATCHING,
    "durable": (
        *_MATCHING,
        BeanOperation("destroy", (), VOID, "delete the subscription", Permission.CLOSE, _destroy, changes=True),
    ),
    "health": (
        BeanOperation("healthStatus", (), TEXT, "health status", Permission.METRICS, _status),
        BeanOperation("health", (), TABLE, "health findings", Permission.METRICS, _health),
    ),
}
