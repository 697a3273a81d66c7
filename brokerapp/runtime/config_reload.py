"""Apply changes of the configuration file to a running node (ActiveMQ's runtimeConfigurationPlugin).

Virtual destinations and policies change at once, as when an operator changes them; what else the file says counts when
the node starts the next time. A file that cannot be used changes nothing, and is complained about once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

from brokerapp.config import BrokerConfig, read_config
from brokerapp.errors import BrokerError, StoreUnavailable
from brokerapp.runtime.node import Node

logger = logging.getLogger(__name__)

PLUGIN, PERIOD = "runtimeConfigurationPlugin", "checkPeriod"
#: The shortest period that is kept, milliseconds.
SHORTEST_PERIOD_MS = 100


def period_ms(config: BrokerConfig) -> int:
    """Return how often the file is checked, in milliseconds; 0: never, as without the plugin or its checkPeriod."""
    periods = [dict(plugin.options).get(PERIOD, "0") for plugin in config.plugins if plugin.name == PLUGIN]
    wanted = max((int(each) for each in periods if each.strip().isdecimal()), default=0)
    return max(wanted, SHORTEST_PERIOD_MS) if wanted else 0


async def watch_file(path: Path, properties: Mapping[str, str], period: int, node: Node) -> None:
    """Check the file every `period` milliseconds and apply its definitions when it changed, until cancelled."""
    seen = _stamp(path)
    while True:
        await asyncio.sleep(period / 1000)
        now = _stamp(path)
        if now == seen or now is None:  # an editor may have it away for a moment
            continue
        try:
            config = await asyncio.to_thread(read_config, path, properties)
            version = await node.impose(config.definitions, path.name)
        except StoreUnavailable:
            continue  # tried again
        except BrokerError as wrong:
            logger.error("the changed file is invalid and ignored: %s", wrong)
        else:
            logger.info("the file changed: routing by definitions version %d", version)
        seen = now


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Return what distinguishes two states of a file; None when it does not exist."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino
