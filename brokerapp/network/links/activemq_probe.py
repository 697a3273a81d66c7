"""Ask an ActiveMQ for its name, by which a bridge knows messages that come again.

Its advisories bear the name. (They bear an id of the broker, too, which is another one each time it starts: messages
that it gives again after a restart were not recognised by it.) Nothing crosses before it is certain whether it has a
name: a message that was handed over from an address and comes again from a name would be kept twice.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from brokerapp.network.links.bridge_link import BridgeLink
from brokerapp.network.links.broker_link import BridgeConnectionLost
from brokerapp.stomp.frames import Frame

logger = logging.getLogger(__name__)

#: Each connection is told of at this topic, and a new listener of those that are there: of its own, at least.
_CONNECTIONS = "/topic/ActiveMQ.Advisory.Connection"
#: In which advisories name the broker they are from.
_NAME = "originBrokerName"
#: A queue of the connection's own. What is sent there comes back behind the advisory, as one connection is given its
#: messages in their order: when it is back without one, there are no advisories, however slow the broker is.
_ECHO = "/temp-queue/sluice.echo"
#: The subscriptions by which it is asked, and their receipts.
_NAME_ASKED, _ECHO_ASKED = "name", "echo"
#: Seconds that an ActiveMQ may take to answer; then the connection is made anew.
ANSWER_SECONDS = 30.0


async def read_broker_name(link: BridgeLink) -> str | None:
    """The name of the ActiveMQ there. None when it has no advisories, or lets the bridge read none.

    Raises LinkLost when it does not answer, or the connection is lost.
    """
    told: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
    refused: dict[str, str] = {}

    def heard(name: str | None) -> None:
        if not told.done():
            told.set_result(name)

    def refuse(error: Frame) -> None:
        refused[error.headers.get("receipt-id", "")] = error.headers.get("message", "")
        if _NAME_ASKED in refused:
            heard(None)

    link.on_error = refuse
    asked = {_NAME_ASKED: _CONNECTIONS, _ECHO_ASKED: _ECHO}
    listening = {_NAME_ASKED: lambda frame: heard(frame.headers.get(_NAME)), _ECHO_ASKED: lambda _frame: heard(None)}
    for id, destination in asked.items():
        headers = {"ack": "auto", "activemq.prefetchSize": "1", "receipt": id}
        link.subscribe(id, destination, listening[id], headers)
    link.send("SEND", {"destination": _ECHO, "receipt": _ECHO_ASKED})
    either: set[asyncio.Future[Any]] = {told, link.lost}
    await asyncio.wait(either, timeout=ANSWER_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    if not told.done():
        why = f", and it rejected the request: {refused[_ECHO_ASKED]}" if _ECHO_ASKED in refused else ""
        raise BridgeConnectionLost(link.lost.result() if link.lost.done() else f"its broker name is unknown{why}")
    for id in asked.keys() - refused.keys():  # there is nothing to end where it was refused: that were an error
        link.unsubscribe(id)
    if told.result() is None:
        why = f"reading them was rejected: {refused[_NAME_ASKED]}" if _NAME_ASKED in refused else "it publishes none"
        logger.warning("%s: no advisories (%s): only statically included destinations are forwarded", link.name, why)
    return told.result()
