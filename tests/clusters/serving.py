"""A broker in a process of its own, as `manage.py runbroker` has it, but forked where all is imported already."""

from __future__ import annotations

import asyncio
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import uvloop

from brokerapp.config import read_config
from brokerapp.data_folder import DataFolder
from brokerapp.node import Node
from brokerapp.store.embedded import EmbeddedStore
from brokerapp.wiring import authenticator, node_config

#: Processes are forked from a server that has imported this module: starting one costs no seconds of importing.
processes = get_context("forkserver")
processes.set_forkserver_preload([__name__])


def serve(config: Path, folder: Path, told: Connection) -> None:
    """Be the broker of this file and data folder until killed; say `ready`, or what is wrong."""
    try:
        uvloop.run(_serve(config, folder, told))
    except Exception as error:
        told.send(repr(error))
        raise


async def _serve(path: Path, folder: Path, told: Connection) -> None:
    config, data = read_config(path), DataFolder(folder)
    data.path.mkdir(parents=True, exist_ok=True)
    url = await asyncio.to_thread(EmbeddedStore(data.store).start)
    wanted = node_config(config, url, alone=True, impose=True, trace=False)
    data.remember(wanted.broker)
    node = Node(wanted, authenticator(config.authentication))
    await node.start()
    told.send("ready")
    await node.failed
