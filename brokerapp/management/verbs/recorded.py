"""Records the state before and after brokerctl's verbs for the audit log.

Only changes of this installation's broker are recorded.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable

from brokerapp.admin import BrokerAdmin
from brokerapp.errors import DestinationNotFound
from brokerapp.management.verbs import shard_verbs
from brokerapp.management.verbs.declaration import Answer
from brokerapp.management.verbs.operations import CliOperation
from brokerapp.model import JsonObject
from brokerapp.model.definition_codec import to_json
from brokerapp.model.destination import Destination
from brokerapp.system.environment import Environment

#: State of an object as JSON; None: it does not exist.
State = JsonObject | None

#: Verbs that change nothing; all others are recorded.
READ_ONLY = frozenset(
    {
        "destinations", "browse", "scheduled", "subscriptions", "definitions", "export", "stats", "groups", "selectors",
        "transactions", "networks", "network-demand", "network-diagnosis", "whatif", "cluster",
        "tables",
    }
)  # fmt: skip
#: Arguments that name the object of a verb, the most specific first.
OBJECT_ARGUMENTS = (
    "destination",
    "queue",
    "job",
    "transaction",
    "subscription",
    "connector",
    "node",
    "definition",
    "file",
    "verb",
)
#: Arguments that select messages and their target.
SELECTION_ARGUMENTS = ("target", "to", "selector", "id", "limit")
#: Scheduled messages among which the one to cancel is searched.
MAX_WAITING = 1_000


def is_recorded(args: Namespace, url: str, name: str) -> bool:
    """Return whether a verb changes something, at the broker of this installation."""
    ours = Environment.read()
    is_ours = (url, name) == (ours.redis_url, ours.broker_name)
    if args.verb == "shards" and not shard_verbs.is_change(args):
        return False
    return is_ours and args.verb not in READ_ONLY and not getattr(args, "dry_run", False)


async def run_recorded(
    operation: CliOperation, verb: Callable[..., Awaitable[Answer]], admin: BrokerAdmin, args: Namespace
) -> Answer:
    """Run a verb, and set the state before and after in the operation."""
    read = STATE_READERS.get(args.verb, _of_destination)
    operation.before = await read(admin, args)
    answer = await verb(admin, args)
    which = {name: value for name in SELECTION_ARGUMENTS if (value := getattr(args, name, None)) is not None}
    operation.after = {**(await read(admin, args) or {}), **which, **answer[0]}
    return answer


def object_of(args: Namespace) -> str:
    """Return the name of the object of a verb."""
    if args.verb == "shards":
        return shard_verbs.object_of(args)
    about = next(value for name in OBJECT_ARGUMENTS if (value := getattr(args, name, None)) is not None)
    return str(about.get("name", "") if isinstance(about, dict) else about)


async def _of_destination(admin: BrokerAdmin, args: Namespace) -> State:
    named = Destination.parse(getattr(args, "destination", None) or args.queue)
    if not named.is_queue:  # a topic stores nothing
        return None
    try:
        return {"QueueSize": await admin.depth(named), "Paused": await admin.is_paused(named)}
    except DestinationNotFound:
        return None


async def _of_definitions(admin: BrokerAdmin, _args: Namespace) -> State:
    return to_json(await admin.definitions())


async def _of_connector(admin: BrokerAdmin, args: Namespace) -> State:
    name = object_of(args)
    found = (each for each in await admin.networks.connectors() if each.name == name)
    return next((each.to_json() for each in found), None)


async def _of_groups(admin: BrokerAdmin, args: Namespace) -> State:
    return {"groups": await admin.groups(Destination.parse(args.queue))}


async def _of_selectors(admin: BrokerAdmin, args: Namespace) -> State:
    return {"selectors": list(await admin.selectors_of(Destination.parse(args.queue)))}


async def _of_scheduled(admin: BrokerAdmin, args: Namespace) -> State:
    _, found = await admin.scheduled(limit=MAX_WAITING)
    wanted = (each for each in found if each.job == args.job)
    return next(({"job": each.job, "due_ms": each.due_ms, "to": each.to} for each in wanted), None)


async def _of_transaction(admin: BrokerAdmin, args: Namespace) -> State:
    wanted = (each for each in await admin.transactions.prepared() if each.id == args.transaction)
    return next((each.to_json() for each in wanted), None)


async def _of_nodes(admin: BrokerAdmin, _args: Namespace) -> State:
    return {"owned": await admin.membership.owned_counts()}


async def _of_shards(admin: BrokerAdmin, _args: Namespace) -> State:
    return {"shards": [each.to_json() for each in await admin.shards.all()]}


async def _of_nothing(admin: BrokerAdmin, args: Namespace) -> State:
    """Return None: what is created or sent does not exist before."""
    return None


#: Functions that read the state of objects other than destinations, by verb.
STATE_READERS: dict[str, Callable[[BrokerAdmin, Namespace], Awaitable[State]]] = {
    "import": _of_definitions,
    "network-put": _of_connector,
    "network-start": _of_connector,
    "network-stop": _of_connector,
    "network-remove": _of_connector,
    "reset-groups": _of_groups,
    "delete-selectors": _of_selectors,
    "cancel-scheduled": _of_scheduled,
    "subscribe": _of_nothing,
    "send": _of_nothing,
    "rebuild-tables": _of_nothing,
    "drain": _of_nodes,
    "rebalance": _of_nodes,
    "commit-transaction": _of_transaction,
    "rollback-transaction": _of_transaction,
    "shards": _of_shards,
}
