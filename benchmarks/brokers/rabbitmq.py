"""RabbitMQ as Debian packages it, with its STOMP plugin and nothing else."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

from benchmarks.brokers.process import BrokerProcess, StartFailed, free_port
from benchmarks.protocol.dialect import RabbitMQDialect
from benchmarks.scenarios.rows import Scenario

#: The package's script that starts a node as whoever calls it (the one in /usr/sbin changes to user rabbitmq).
SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")

_CONFIGURATION = """listeners.tcp = none
stomp.listeners.tcp.1 = 127.0.0.1:{port}
log.file.level = warning
"""


class RabbitMQ:
    """One RabbitMQ node with an empty store; its port mapper is its own, and all of it listens on 127.0.0.1 alone.

    Queues are durable; a receipt for a persistent message comes when the queue has written it to disk.
    """

    name = pace = "rabbitmq"
    title = "RabbitMQ"
    dialect = RabbitMQDialect()
    process: BrokerProcess | None = None
    mapper: BrokerProcess | None = None

    def start(self, scenario: Scenario, folder: Path) -> tuple[str, int]:
        """Start it for this scenario, its files in `folder`; answers host and port. Raises StartFailed."""
        if not SERVER.exists():
            raise StartFailed(f"{SERVER} is not there: apt-get install rabbitmq-server")
        port, mapper_port = free_port(), free_port()
        (folder / "rabbitmq.conf").write_text(_CONFIGURATION.format(port=port))
        (folder / "enabled_plugins").write_text("[rabbitmq_stomp].\n")
        (folder / "environment").touch()
        environment = {
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(mapper_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"bench-{secrets.token_hex(4)}@localhost",
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_CONF_ENV_FILE": str(folder / "environment"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
        }
        # Started here, the mapper ends with us; a node that finds none starts one that stays.
        self.mapper = BrokerProcess([_epmd()], folder / "epmd.log", environment)
        self.mapper.wait_until_listening(mapper_port)
        self.process = BrokerProcess([str(SERVER)], folder / "rabbitmq.log", environment)
        self.process.wait_until_listening(port)
        return "127.0.0.1", port

    def stop(self) -> None:
        """End it and its port mapper."""
        for each in (self.process, self.mapper):
            if each:
                each.stop()


def _epmd() -> str:
    found = shutil.which("epmd")
    if not found:
        raise StartFailed("epmd is not there: apt-get install erlang-base")
    return found
