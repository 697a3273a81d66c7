"""One broker node in the foreground, from an ActiveMQ XML file: `sluice broker`, `manage.py runbroker`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import uvloop

from brokerapp.backup.data_folder import check_decided
from brokerapp.config import BrokerConfig, ImportOutcome, export_config, read_config
from brokerapp.errors import BrokerError, Fenced, NodeIsolated, StoreUnavailable
from brokerapp.management.output import exit_status, write_line
from brokerapp.monitoring.health_pages import STARTING
from brokerapp.monitoring.health_server import HealthAddress, HealthServer
from brokerapp.nodes.links.link_address import LinkAddress, check_link_address
from brokerapp.nodes.membership.restart_backoff import RestartBackoff
from brokerapp.runtime.bootstrap import (
    authenticator,
    check_exposure,
    check_served,
    link_tls,
    listen_addresses,
    node_config,
)
from brokerapp.runtime.config_reload import period_ms, watch_file
from brokerapp.runtime.listeners import check_free
from brokerapp.runtime.node import Node
from brokerapp.store.nodes import NODE_TIMEOUT_MS, ONLY_NODE
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.system.data_directory import NODE, DataDirectory, check_data_directory, make_data_directory
from brokerapp.system.process_lock import OWNER_UMASK
from brokerapp.system.secret_variables import with_secrets
from brokerapp.system.store_address import check_replicas, check_store_url

logger = logging.getLogger(__name__)

#: Seconds between looks at whether our own store still runs.
WATCH_SECONDS = 0.2
#: The most between two attempts to start one that does not start.
LONGEST_WATCH_SECONDS = 10.0
#: Seconds after which a task that was cancelled and did not end is cancelled again.
CANCEL_SECONDS = 1.0


SUMMARY = "Run one broker node in the foreground, configured by an ActiveMQ XML file."


def broker(arguments: list[str], program: str) -> int:
    """Run a node until SIGTERM or SIGINT. Return 0 after a clean stop, 1 when it cannot start or go on."""
    parser = ArgumentParser(prog=program, description=SUMMARY)
    add_arguments(parser)
    return exit_status(partial(run, parser.parse_args(arguments), sys.stdout, sys.stderr))


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of a node."""
    parser.add_argument("--config", required=True, type=Path, help="ActiveMQ XML file")
    parser.add_argument("--data", required=True, type=Path, help="data folder of the node")
    parser.add_argument(
        "--redis",
        help="URL of a Redis or Valkey server, redis://HOST:PORT,HOST:PORT of one with replicas, "
        "sentinel://HOST:PORT,HOST:PORT/NAME, or cluster://HOST:PORT,HOST:PORT "
        "(default: that of the variable REDIS_URL, else a server in the data folder)",
    )
    parser.add_argument(
        "--replicas",
        type=int,
        default=0,
        metavar="N",
        help="send a receipt when N replicas have the message on disk, too (default: 0)",
    )
    parser.add_argument("--name", help="broker name (default: as in the file)")
    parser.add_argument(
        "--node", default=ONLY_NODE, help="name of this node, if several nodes of the broker share one --redis"
    )
    parser.add_argument(
        "--node-timeout",
        type=float,
        default=NODE_TIMEOUT_MS / 1000,
        help="failure timeout in seconds before other nodes take over",
    )
    parser.add_argument(
        "--link",
        default="127.0.0.1",
        help="address at which other nodes reach this one; ssl://ADDRESS uses TLS with the file's sslContext",
    )
    parser.add_argument(
        "--health",
        metavar="HOST:PORT",
        help="serve /healthz, /readyz and /metrics of this node there, without authentication (default: nowhere)",
    )
    parser.add_argument(
        "--anonymous",
        action="store_true",
        help="allow listeners on other interfaces without authentication",
    )
    parser.add_argument(
        "--print-config",
        action="store_true",
        help="print the effective configuration as an activemq.xml without placeholders, and exit",
    )
    parser.add_argument("--no-trace", action="store_true", help="disable tracing of messages")


def run(options: Namespace, output: TextIO, errors: TextIO) -> None:
    """Run a node with these options until it is told to stop. Raises BrokerError or OSError."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    # Not only as an option: everybody on the machine can read command lines.
    options.redis = options.redis or with_secrets(os.environ).get("REDIS_URL")
    if options.redis:
        check_store_url(options.redis)
    check_replicas(options.replicas, options.redis)
    health_address = HealthAddress.parse(options.health) if options.health else None
    properties = {"activemq.data": str(options.data.resolve())}
    config = read_config(options.config, properties)
    if options.print_config:
        _report(config, errors)
        output.write(export_config(config))
        return
    check_exposure(config, options.anonymous)
    _report(config, errors)
    check_served(config)
    uvloop.run(NodeProcess(options, output).run(config, properties, health_address))
    _print_stopped(output)


def _report(config: BrokerConfig, errors: TextIO) -> None:
    for finding in config.report:
        if finding.what is not ImportOutcome.TAKEN:
            write_line(errors, str(finding))
    for sentence in listen_addresses(config)[1]:
        write_line(errors, sentence)


def _print_stopped(output: TextIO) -> None:
    """Print that the node stopped cleanly, unless whoever started it has closed the other end by now."""
    try:
        write_line(output, "stopped")
    except OSError:  # Python would fail to flush what is left when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class NodeProcess:
    """Runs the nodes of a process, one after the other: one that was excluded joins again."""

    def __init__(self, options: Namespace, output: TextIO) -> None:
        self._options, self._output = options, output
        self._node: Node | None = None

    async def run(self, config: BrokerConfig, properties: dict[str, str], health_address: HealthAddress | None) -> None:
        """Run until SIGTERM or SIGINT, or until a node fails for good."""
        options = self._options
        data = DataDirectory(options.data.resolve())
        os.umask(OWNER_UMASK)
        check_data_directory(data.path, NODE)
        check_decided(data.path)  # there may be no store yet that says so
        if not data.path.exists():  # a start that is refused leaves none; where there is one, its node may be ending
            await check_free(listen_addresses(config)[0])
        make_data_directory(data.path, NODE)
        health = HealthServer(lambda: self._node.health() if self._node is not None else STARTING)
        if health_address is not None:
            await health.start(health_address)
        store = None if options.redis else EmbeddedStore(data.store)
        url = options.redis if store is None else await asyncio.to_thread(store.start)
        try:
            wanted = node_config(
                config,
                url,
                name=options.name,
                alone=store is not None,
                impose=True,
                trace=not options.no_trace,
                replicas=options.replicas,
            )
            reach = LinkAddress.parse(options.link)
            wanted = replace(
                wanted,
                node=options.node,
                store_folder=data.store if store is not None else None,
                node_timeout_ms=int(options.node_timeout * 1000),
                link_host=reach.host,
                link_tls=link_tls(config) if reach.tls else None,
            )
            if options.redis and wanted.node != ONLY_NODE:
                check_link_address(wanted.node, reach, url)
            data.remember(wanted.broker, options.redis)
            period = period_ms(config)
            stop_requested, backoff = _stop_requested(), RestartBackoff()
            while not stop_requested.is_set():
                began, node = time.monotonic(), Node(wanted, authenticator(config.authentication))
                companions = [partial(_keep_alive, store)] if store is not None else []
                if period:
                    companions.append(partial(watch_file, options.config, properties, period, node))
                error = await self._run_node(node, companions, stop_requested)
                if error is None:
                    break
                expelled = await _unless_stopped(stop_requested, node.was_expelled())
                pause = 0.0 if expelled is None else backoff.delay(error, expelled.result(), time.monotonic() - began)
                await node.abandon()  # its tasks, too: a cancel that gets lost kept the process from ending
                if pause is None:
                    raise error
                logger.warning("node %s rejoins in %g s", wanted.node, pause)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stop_requested.wait(), pause)
        finally:
            health.stop()
            if store is not None:
                await asyncio.to_thread(store.stop)

    async def _run_node(
        self, node: Node, companions: Iterable[Callable[[], Coroutine[Any, Any, None]]], stop_requested: asyncio.Event
    ) -> BaseException | None:
        """Run the node and its companion tasks until it fails or a stop is requested; return the error, None after a
        clean stop.
        """
        self._node = node
        try:
            if (started := await _unless_stopped(stop_requested, node.start())) is None:
                await node.abandon()
                return None
            started.result()
        except (Fenced, NodeIsolated, StoreUnavailable) as error:
            return error
        write_line(self._output, "ready")
        running = [asyncio.create_task(each()) for each in companions]
        await _unless_stopped(stop_requested, asyncio.wait({node.failed}))
        for each in running:
            each.cancel()
        if node.failed.done():
            return node.failed.exception()
        await node.stop()
        return None


async def _unless_stopped(stop_requested: asyncio.Event, work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any] | None:
    """Await work that may take long; return None if the process is to stop before it is done."""
    doing, stop = asyncio.ensure_future(work), asyncio.ensure_future(stop_requested.wait())
    await asyncio.wait({doing, stop}, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if doing.done():
        return doing
    while not doing.done():  # a cancel that meets the end of one of the driver's reads gets lost
        doing.cancel()
        await asyncio.wait({doing}, timeout=CANCEL_SECONDS)
    return None


def _stop_requested() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set."""
    stop_requested = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop_requested.set)
    return stop_requested


async def _keep_alive(store: EmbeddedStore) -> None:
    """Restart the embedded store whenever it terminates; the node waits for it meanwhile.

    The reason of a failed start is logged once. Each attempt may read the whole file, so attempts become rarer.
    """
    problem, pause = "", WATCH_SECONDS
    while True:
        await asyncio.sleep(pause)
        try:
            if await asyncio.to_thread(store.restart_if_dead):
                logger.warning("the store terminated and was restarted; end of its log: %s", store.last_log_lines)
        except (BrokerError, OSError) as error:
            if str(error) != problem:
                logger.error("the store does not start: %s", error)
            problem, pause = str(error), min(2 * pause, LONGEST_WATCH_SECONDS)
        else:
            problem, pause = "", WATCH_SECONDS
