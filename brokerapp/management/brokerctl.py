"""An operator's work without a browser: `sluice ctl`, `manage.py brokerctl`."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TextIO

from brokerapp.admin import BrokerAdmin
from brokerapp.errors import RequestRefused, StoreUnavailable, StoreUnreachable
from brokerapp.management.output import exit_status, write_line
from brokerapp.management.verbs.browse_verb import DESTINATION, add_browse_verb, browse
from brokerapp.management.verbs.cluster_verb import cluster
from brokerapp.management.verbs.declaration import BROWSE_LIMIT, FORMER_NAMES, Answer, add_verb
from brokerapp.management.verbs.network_verbs import NETWORK_VERBS, add_network_verbs
from brokerapp.management.verbs.node_verbs import NODE_VERBS, add_node_verbs
from brokerapp.management.verbs.operations import reporting
from brokerapp.management.verbs.queue_verbs import QUEUE_VERBS, add_verbs
from brokerapp.management.verbs.recorded import is_recorded, object_of, run_recorded
from brokerapp.management.verbs.send_verb import add_send_verb, send
from brokerapp.management.verbs.shard_verbs import add_shard_verbs, shards
from brokerapp.management.verbs.tables_verb import add_table_verbs, rebuild_tables, tables
from brokerapp.management.verbs.transaction_verbs import TRANSACTION_VERBS, add_transaction_verbs
from brokerapp.management.verbs.whatif_verb import add_whatif_verb, whatif
from brokerapp.model.definition_codec import to_json, virtual_destination_to_json
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import NodeStatus
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.openwire.shown_messages import shown_headers, shown_lines
from brokerapp.store.server.durability import durability_loss, replica_shortage
from brokerapp.system import extras
from brokerapp.system.checkout import command
from brokerapp.system.data_directory import DataDirectory
from brokerapp.system.environment import Environment

#: What came to queues, what left them, and what they hold.
FLOW = ("EnqueueCount", "DequeueCount", "QueueSize")
MIB = 1024 * 1024
COLUMNS = ("QueueSize", "InFlightCount", "ConsumerCount", "EnqueueCount", "DequeueCount")


SUMMARY = "Manage destinations, messages, subscriptions and routing of a broker."


def ctl(arguments: list[str], program: str) -> int:
    """Run one verb. Return 0, or 1 with one sentence on standard error."""
    parser = ArgumentParser(prog=program, description=SUMMARY)
    add_arguments(parser)
    return exit_status(partial(run, parser.parse_args(arguments), sys.stdout))


def add_arguments(parser: ArgumentParser) -> None:
    """Add all verbs with their options."""
    _add_common(parser, {"data": None, "redis": None, "name": None, "json": False})
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    parser.error = partial(_report_error, parser.error)  # type: ignore[method-assign]
    listing = add_verb(verbs, "destinations", "list destinations with metrics")
    listing.add_argument("--contains", default="", help="only destinations whose name contains this text")
    listing.add_argument("--temporary", action="store_true", help="include temporary destinations")
    add_browse_verb(add_verb(verbs, "browse", "browse messages of a queue"))
    for verb, text in (
        ("create", "create a queue or topic"),
        ("purge", "purge a queue (in-flight messages stay)"),
        ("delete", "delete a queue or topic with its messages"),
    ):
        add_verb(verbs, verb, text).add_argument("destination", help=DESTINATION)
    add_send_verb(add_verb(verbs, "send", "send a text, bytes or map message with typed properties"))
    add_verbs(verbs)
    add_network_verbs(verbs)
    add_node_verbs(verbs)
    add_transaction_verbs(verbs)
    add_shard_verbs(verbs)
    waiting = add_verb(verbs, "scheduled", "list scheduled messages, the next due first")
    waiting.add_argument("--skip", type=int, default=0, help="number of messages to skip")
    waiting.add_argument("--limit", type=int, default=BROWSE_LIMIT, help="maximum number (default: %(default)d)")
    forgetting = add_verb(verbs, "cancel-scheduled", "cancel a scheduled message")
    forgetting.add_argument("job", help="scheduledJobId of the message")
    add_verb(verbs, "subscriptions", "list durable and shared subscriptions")
    subscribe = add_verb(verbs, "subscribe", "create a durable subscription")
    subscribe.add_argument("client", help="client-id; '' for a shared subscription without one")
    subscribe.add_argument("subscription", help="name of the subscription")
    subscribe.add_argument("topic", help="topic://NAME, /topic/NAME or the bare name of a topic, or a pattern")
    subscribe.add_argument("--selector", help="only messages that match")
    subscribe.add_argument("--no-local", action="store_true", help="exclude messages sent by the same client")
    subscribe.add_argument("--shared", action="store_true", help="allow several consumers to share it")
    add_verb(verbs, "definitions", "show active definitions")
    importing = add_verb(verbs, "import", "import and apply definitions from an ActiveMQ XML file")
    importing.add_argument("file", type=Path)
    importing.add_argument("--dry-run", action="store_true", help="only show the report")
    add_whatif_verb(verbs)
    add_table_verbs(verbs)
    add_verb(verbs, "export", "export definitions and connectors as an ActiveMQ XML file (without passwords)")
    add_verb(verbs, "stats", "show the running nodes")
    add_verb(verbs, "cluster", "show the brokers of the cluster, its master and its change record")
    for each in _parsers_below(parser):  # also after the verb; SUPPRESS keeps those before it
        _add_common(each, dict.fromkeys(("data", "redis", "name", "json"), SUPPRESS))


def run(args: Namespace, output: TextIO) -> None:
    """Run the verb of these options and write its result. Raises BrokerError or OSError."""
    url, name = _locate_broker(args)
    try:
        result, lines = _run(url, name, args)
    except StoreUnreachable as error:
        if args.redis or not url.startswith("unix:"):
            raise
        folder = args.data or Environment.read().data
        raise StoreUnavailable(
            f"no broker runs in {folder}: start it with `{command('up')}` (or `{command('broker')}`), "
            "or name --data or --redis"
        ) from error
    write_line(output, json.dumps(result, indent=1, ensure_ascii=False) if args.json else "\n".join(lines))


def _parsers_below(parser: ArgumentParser) -> set[ArgumentParser]:
    """Return the parsers of verbs, and of the actions that verbs have."""
    choices = [each.choices for each in parser._actions if isinstance(each, _SubParsersAction)]
    found = {below for each in choices for below in each.values()}
    return found.union(*map(_parsers_below, found))


def _add_common(parser: ArgumentParser, defaults: dict[str, Any]) -> None:
    """Add the options of all verbs."""
    folder = f"data folder of a `{command('broker')}`, from which store and broker name are read"
    parser.add_argument("--data", type=Path, default=defaults["data"], help=folder)
    parser.add_argument("--redis", default=defaults["redis"], help="URL of the store")
    parser.add_argument("--name", default=defaults["name"], help="broker name")
    parser.add_argument("--json", action="store_true", default=defaults["json"], help="print JSON")


def _report_error(report: Callable[[str], NoReturn], message: str) -> NoReturn:
    """Report what is wrong with the command line; suggest names like an unknown verb."""
    found = re.match("argument VERB: invalid choice: '(.*?)'", message)
    if found is None:
        report(message)
    from difflib import get_close_matches  # here: most calls do not need it

    near = " or ".join(get_close_matches(found[1], VERBS))
    report(f"unknown command {found[1]!r}{f': did you mean {near}?' if near else '.'} Commands: {', '.join(VERBS)}")


def _locate_broker(args: Namespace) -> tuple[str, str]:
    """Return the store's URL and the broker's name, from the options or the environment."""
    environment = Environment.read()
    if args.data is not None and not _is_installation(args.data, environment):
        url, name = DataDirectory(args.data).locate_store()
        return url, args.name or name
    return args.redis or environment.redis_url, args.name or environment.broker_name


def _is_installation(data: Path, environment: Environment) -> bool:
    """Return whether a data folder is the one of `sluice up`. Raises RequestRefused where it is that of another."""
    if not DataDirectory(data).is_of_installation:
        return False
    if data.resolve() != environment.data:
        raise RequestRefused(f"{data} is the folder of `{command('up')}`: set SLUICE_DATA to it instead of --data")
    return True


Verb = Callable[[BrokerAdmin, Namespace], Awaitable[Answer]]


def _run(url: str, name: str, args: Namespace) -> Answer:
    """Run a verb; report it to the audit log if it changes the broker of this installation."""
    if args.verb in ANALYTICS_VERBS:
        extras.require(extras.ANALYTICS, f"{args.verb} needs")
    verb = VERBS[args.verb]
    if not is_recorded(args, url, name):
        return asyncio.run(_run_verb(url, name, verb, args))
    with reporting(FORMER_NAMES.get(args.verb, args.verb), object_of(args)) as operation:
        return asyncio.run(_run_verb(url, name, partial(run_recorded, operation, verb), args))


async def _run_verb(url: str, name: str, verb: Verb, args: Namespace) -> Answer:
    admin = BrokerAdmin(url, name)
    try:
        return await verb(admin, args)
    finally:
        await admin.close()


async def _destinations(admin: BrokerAdmin, args: Namespace) -> Answer:
    _, stats, _ = await admin.stats()
    shown = (each for each in stats if args.temporary or not each.destination.is_temporary)
    rows = sorted((each for each in shown if args.contains in each.destination.name), key=lambda each: each.destination)
    width = max((len(str(each.destination)) for each in rows), default=0)
    lines = [f"{'destination':<{width}}  " + "  ".join(f"{column:>13}" for column in COLUMNS)]
    lines += [
        f"{each.destination!s:<{width}}  " + "  ".join(f"{getattr(each, column):>13,}" for column in COLUMNS)
        for each in rows
    ]
    return [each.to_json() for each in rows], lines if rows else ["No destinations"]


def _messages(count: int) -> str:
    return f"{count:,} message{'' if count == 1 else 's'}"


async def _create(admin: BrokerAdmin, args: Namespace) -> Answer:
    is_new = await admin.create(Destination.parse(args.destination))
    said = "created" if is_new else "exists already"
    return {"created": args.destination, "new": is_new}, [f"{args.destination} {said}"]


async def _purge(admin: BrokerAdmin, args: Namespace) -> Answer:
    count = await admin.purge(Destination.parse(args.destination))
    return {"purged": count}, [f"{args.destination} purged ({_messages(count)})"]


async def _delete(admin: BrokerAdmin, args: Namespace) -> Answer:
    count = await admin.delete(Destination.parse(args.destination))
    return {"deleted": args.destination, "messages": count}, [f"{args.destination} deleted ({_messages(count)})"]


async def _scheduled(admin: BrokerAdmin, args: Namespace) -> Answer:
    count, found = await admin.scheduled(skip=args.skip, limit=args.limit)
    lines = []
    for each in found:
        due = datetime.fromtimestamp(each.due_ms / 1000).astimezone().isoformat(sep=" ", timespec="milliseconds")
        lines.append(f"{each.job}  {due}  {each.purpose} to {each.to}  {each.size} bytes")
        lines += [f"    {line}" for line in shown_lines(each.headers)]
    waiting = [{**asdict(each), "headers": shown_headers(each.headers)} for each in found]
    return {"count": count, "waiting": waiting}, [*lines, f"{_messages(count)} scheduled"]


async def _cancel_scheduled(admin: BrokerAdmin, args: Namespace) -> Answer:
    await admin.cancel_scheduled(args.job)
    return {"forgotten": args.job}, [f"Scheduled message {args.job} cancelled"]


async def _subscriptions(admin: BrokerAdmin, _args: Namespace) -> Answer:
    found = sorted(await admin.subscriptions(), key=lambda each: each.numbers.destination)
    lines = []
    for each in found:
        numbers, asked = each.numbers, each.subscription
        selector = f" where {asked.condition}" if asked.condition else ""
        state = f"{numbers.ConsumerCount} consumers" if numbers.ConsumerCount else "offline"
        lines.append(f"{numbers.destination}  {', '.join(map(str, asked.topics))}{selector}")
        lines.append(f"    {asked}: {state}, {_messages(numbers.QueueSize)}")
    return [each.to_json() for each in found], lines or ["No durable or shared subscriptions"]


async def _subscribe(admin: BrokerAdmin, args: Namespace) -> Answer:
    topic = Destination.parse(args.topic, DestinationKind.TOPIC)
    wanted = SubscriptionIdentity(
        args.client, args.subscription, (topic,), args.selector, no_local=args.no_local, shared=args.shared
    )
    created = await admin.create_subscription(wanted)
    return {"created": str(created)}, [f"{created} created"]


async def _definitions(admin: BrokerAdmin, _args: Namespace) -> Answer:
    definitions = await admin.definitions()
    lines = [json.dumps(virtual_destination_to_json(each)) for each in definitions.virtual_destinations]
    return to_json(definitions), [f"version {definitions.version}", *lines]


async def _import(admin: BrokerAdmin, args: Namespace) -> Answer:
    if not args.file.is_file():
        raise RequestRefused(f"file {args.file} not found")
    from brokerapp.config import import_definitions  # here: other verbs need not wait for it

    wanted, report = import_definitions(args.file.read_bytes())
    current = await admin.definitions()
    findings = [str(finding) for finding in report]
    kept = {each.id for each in wanted.items}
    gone = [each.called for each in current.items if each.id not in kept]
    lines = [*findings, *(f"deleted because it is not in the file: {each}" for each in gone)]
    if args.dry_run:
        lines.append("dry run: nothing was changed; an import replaces the active definitions")
        return {"version": current.version, "report": findings, "gone": gone}, lines
    new = await admin.define(replace(wanted, version=current.version), "brokerctl", f"import of {args.file.name}")
    lines.append(f"Definitions applied as version {new.version}")
    return {"version": new.version, "report": findings, "gone": gone}, lines


async def _export(admin: BrokerAdmin, _args: Namespace) -> Answer:
    from brokerapp.config import export_xml

    connectors = [each.without_secrets() for each in await admin.networks.connectors()]
    text = export_xml(await admin.definitions(), admin.broker, network_connectors=tuple(connectors))
    return {"xml": text}, [text]


async def _stats(admin: BrokerAdmin, _args: Namespace) -> Answer:
    nodes = await admin.nodes()
    _, stats, _ = await admin.stats()
    queues = [each for each in stats if each.destination.is_queue]
    arrived, left, pending = (sum(getattr(each, name) for each in queues) for name in FLOW)
    lines = [_node_line(node) for node in nodes]
    flow = f"{_messages(arrived)} enqueued and {left:,} dequeued since the node started, depth {pending:,}"
    lines.append(f"queues and subscriptions: {flow}")
    return [node.to_json() for node in nodes], lines if nodes else ["No running nodes"]


def _node_line(node: NodeStatus) -> str:
    """Describe a node: addresses, connections and use of the store."""
    count, used = node.connected.get("all", 0), node.store.get("used")
    limit = node.store.get("limit") or node.store.get("message_limit")
    store = (
        "" if used is None else f", store uses {used / MIB:,.1f} MiB" + (f" of {limit / MIB:,.1f} MiB" if limit else "")
    )
    connections = f"{count:,} connection{'' if count == 1 else 's'}"
    lost = f"; not durable: {found}" if (found := durability_loss(node.store)) else ""
    few = f"; {found}" if (found := replica_shortage(node.store)) else ""
    about = f"{', '.join(node.address)}, {connections}{store}{_owned_queues(node)}{lost}{few}"
    return f"{node.broker} {node.name} ({node.node}): {about}"


def _owned_queues(node: NodeStatus) -> str:
    """Describe the part of a node in a broker of several nodes."""
    if not node.homes:
        return ""
    unreached = f", cannot reach {', '.join(node.homes['unreached'])}" if node.homes["unreached"] else ""
    drain = f", {node.homes['draining']}" if node.homes.get("draining") else ""
    return f"{drain}, owns {node.homes['logs']:,} queue{'' if node.homes['logs'] == 1 else 's'}{unreached}"


#: Verbs that read recorded traffic, or have Spark compute something of it.
ANALYTICS_VERBS = frozenset({"whatif", "tables", "rebuild-tables"})

VERBS: dict[str, Verb] = {
    "destinations": _destinations,
    "browse": browse,
    "send": send,
    "create": _create,
    "purge": _purge,
    "delete": _delete,
    "scheduled": _scheduled,
    "cancel-scheduled": _cancel_scheduled,
    "subscriptions": _subscriptions,
    "subscribe": _subscribe,
    "definitions": _definitions,
    "import": _import,
    "export": _export,
    "whatif": whatif,
    "tables": tables,
    "rebuild-tables": rebuild_tables,
    "stats": _stats,
    "cluster": cluster,
    "shards": shards,
    **QUEUE_VERBS,
    **NETWORK_VERBS,
    **NODE_VERBS,
    **TRANSACTION_VERBS,
}
