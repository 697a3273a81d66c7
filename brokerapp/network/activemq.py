"""What a bridge asks an ActiveMQ before it begins."""

from __future__ import annotations

import asyncio
import logging

from brokerapp.network.link import Link
from brokerapp.stomp.frames import Frame

logger = logging.getLogger(__name__)

#: Each connection is told of at this topic, and a new listener of those that are there: of its own, at least.
_CONNECTIONS = "/topic/ActiveMQ.Advisory.Connection"
#: In which advisories name the broker they are from.
_NAME = "originBrokerName"
#: The subscription by which it is asked.
_NAME_ASKED = "name"
#: Seconds that an ActiveMQ may take to tell its name. One without advisories never does.
NAME_SECONDS = 5.0


async def ask_name(link: Link) -> str | None:
    """The name of the ActiveMQ there: its advisories bear it. None when it has none, or lets nobody read them."""
    told: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def heard(frame: Frame) -> None:
        if not told.done():
            told.set_result(frame.headers.get(_NAME))

    def refused(_error: Frame) -> None:
        if not told.done():
            told.set_result(None)

    link.refused = refused
    link.subscribe(_NAME_ASKED, _CONNECTIONS, heard, {"ack": "auto", "activemq.prefetchSize": "1"})
    await asyncio.wait({told, link.lost}, timeout=NAME_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    name = told.result() if told.done() else None
    if name is not None or not told.done():  # there is nothing to end where it was refused: that were an error
        link.unsubscribe(_NAME_ASKED)
    if name is None:
        logger.warning("%s: there are no advisories to be had: only what is included statically crosses", link.name)
    return name
