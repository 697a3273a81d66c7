"""Sluice as its users start a node alone."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.brokers.configuration import broker_xml
from benchmarks.brokers.process import BrokerProcess, free_port
from benchmarks.protocol.dialect import ActiveMQDialect
from benchmarks.protocol.transports import Tls, WebSocket, write_certificate
from benchmarks.scenarios.rows import Scenario

PROJECT = Path(__file__).resolve().parent.parent.parent


class Sluice:
    """One Sluice node with an empty embedded store, which syncs its append-only file before it answers."""

    name = pace = "sluice"
    title = "Sluice"
    dialect = ActiveMQDialect()
    options: tuple[str, ...] = ()
    scheme = "stomp"
    broker = "bench"
    process: BrokerProcess | None = None

    def start(self, scenario: Scenario, folder: Path, extra: str = "") -> tuple[str, int]:
        """Start it for this scenario, its files in `folder`; answers host and port. Raises StartFailed.

        `extra` is what else its XML file holds.
        """
        port = free_port()
        configuration = folder / "activemq.xml"
        configuration.write_text(broker_xml(scenario, port, folder / "data", extra, self.scheme, self.broker))
        command = [sys.executable, str(PROJECT / "manage.py"), "runbroker"]
        command += ["--config", str(configuration), "--data", str(folder / "data"), *self.options]
        self.process = BrokerProcess(command, folder / "sluice.log")
        self.process.wait_for_line("ready")
        return "127.0.0.1", port

    def stop(self) -> None:
        """End it, its store with it."""
        if self.process:
            self.process.stop()


class Untraced(Sluice):
    """The same without recording: the difference is what recording costs."""

    name = "untraced"
    title = "Sluice without trace"
    options = ("--no-trace",)


class OverTls(Sluice):
    """The same with clients that connect over TLS."""

    name = "tls"
    title = "Sluice over TLS"
    dialect = ActiveMQDialect(transport=Tls)
    scheme = "stomp+ssl"

    def start(self, scenario: Scenario, folder: Path, extra: str = "") -> tuple[str, int]:
        write_certificate(folder / "broker.pem")
        return super().start(scenario, folder, f'{extra}    <sslContext keyStore="file:broker.pem"/>\n')


class OverWebSocket(Sluice):
    """The same with clients that connect as browsers do."""

    name = "websocket"
    title = "Sluice over WebSocket"
    dialect = ActiveMQDialect(transport=WebSocket)
    scheme = "ws"
