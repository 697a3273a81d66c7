"""Records the state before and after brokerctl's verbs for the audit log.

Only changes of this installation's broker are recorded.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable

from brokerapp.admin import BrokerAdmin
from brokerapp.errors import DestinationNotFound
from brokerapp.management.operations import CliOperation
from brokerapp.management.verbs import Answer
from brokerapp.model import JsonObject
from brokerapp.model.definition_codec import to_json
from brokerapp.model.destination import Destination
from brokerapp.system.environment import Environment

#: How something stands, as JSON; None: it does not exist.
Standing = JsonObject | None

#: Verbs that change nothing; what is not among them is recorded.
READING = frozenset(
    {
        "destinations", "browse", "scheduled", "subscriptions", "definitions", "export", "stats", "groups", "selectors",
        "networks", "network-demand", "network-diagnosis", "whatif", "cluster",
    }
)  # fmt: skip
#: Arguments that say what a verb is about, the most telling first.
ABOUT = ("destination", "queue", "job", "subscription", "connector", "definition", "file", "verb")
#: Arguments that say which messages, and where they go.
WHICH = ("target", "to", "selector", "id", "limit")
#: Messages that wait until they are due, among which the one is looked for that shall not.
MAX_WAITING = 1_000


def is_recorded(args: Namespace, url: str, name: str) -> bool:
    """Return whether a verb changes something, at the broker of this installation."""
    ours = Environment.read()
    is_ours = (url, name) == (ours.redis_url, ours.broker_name)
    return is_ours and args.verb not in READING and not getattr(args, "dry_run", False)


async def noted(
    operation: CliOperation, verb: Callable[..., Awaitable[Answer]], admin: BrokerAdmin, args: Namespace
) -> Answer:
    """Run a verb, and set the state before and after in the operation."""
    read = STANDING.get(args.verb, _of_destination)
    operation.before = await read(admin, args)
    answer = await verb(admin, args)
    which = {name: value for name in WHICH if (value := getattr(args, name, None)) is not None}
    operation.after = {**(await read(admin, args) or {}), **which, **answer[0]}
    return answer


def object_of(args: Namespace) -> str:
    """Return the name of the object of a verb."""
    about = next(value for name in ABOUT if (value := getattr(args, name, None)) is not None)
    return str(about.get("name", "") if isinstance(about, dict) else about)


async def _of_destination(admin: BrokerAdmin, args: Namespace) -> Standing:
    named = Destination.parse(getattr(args, "destination", None) or args.queue)
    if not named.is_queue:  # a topic stores nothing
        return None
    try:
        return {"QueueSize": await admin.depth(named), "Paused": await admin.is_paused(named)}
    except DestinationNotFound:
        return None


async def _of_definitions(admin: BrokerAdmin, _args: Namespace) -> Standing:
    return to_json(await admin.definitions())


async def _of_connector(admin: BrokerAdmin, args: Namespace) -> Standing:
    name = object_of(args)
    found = (each for each in await admin.networks.connectors() if each.name == name)
    return next((each.to_json() for each in found), None)


async def _of_groups(admin: BrokerAdmin, args: Namespace) -> Standing:
    return {"groups": await admin.groups(Destination.parse(args.queue))}


async def _of_selectors(admin: BrokerAdmin, args: Namespace) -> Standing:
    return {"selectors": list(await admin.selectors_of(Destination.parse(args.queue)))}


async def _of_scheduled(admin: BrokerAdmin, args: Namespace) -> Standing:
    _, found = await admin.scheduled(limit=MAX_WAITING)
    wanted = (each for each in found if each.job == args.job)
    return next(({"job": each.job, "due_ms": each.due_ms, "to": each.to} for each in wanted), None)


async def _of_subscription(admin: BrokerAdmin, args: Namespace) -> Standing:
    """Return None: a subscription does not exist before its creation."""
    return None


#: How what a verb is about stands, where that is no destination.
STANDING: dict[str, Callable[[BrokerAdmin, Namespace], Awaitable[Standing]]] = {
    "import": _of_definitions,
    "network-put": _of_connector,
    "network-start": _of_connector,
    "network-stop": _of_connector,
    "network-remove": _of_connector,
    "reset-groups": _of_groups,
    "delete-selectors": _of_selectors,
    "cancel-scheduled": _of_scheduled,
    "subscribe": _of_subscription,
}
