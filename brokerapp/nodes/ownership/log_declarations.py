"""Makes the creation and removal of logs known to all nodes before clients may rely on it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.ports import LogDiscovery

#: The name of a log, and its attributes as JSON; None: it is removed.
Declaration = tuple[str, str | None]


class LogDeclarations:
    """Tells other nodes which logs were declared or removed here, and learns the same from them."""

    def __init__(
        self,
        *,
        peers: Peers,
        requests: NodeRequests,
        store_recovery: LogDiscovery,
        observers: Sequence[NodeObserver],
    ) -> None:
        self._peers, self._requests, self._store_recovery, self._observers = peers, requests, store_recovery, observers

    def on_log_removed(self, log: str) -> None:
        """Forget a log that does not exist any more."""
        for observer in self._observers:
            observer.on_log_removed(log)

    async def declare(self, declarations: Sequence[Declaration]) -> None:
        """Return when all nodes know that these logs were declared in the store, or removed there."""
        for log, attributes in declarations:
            if attributes is None:
                self.on_log_removed(log)
        if self._peers.other_sessions:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            rows = [list(each) for each in declarations]
            self._requests.send(
                self._peers.other_sessions, PeerMessageType.LOGS, (rows,), lambda _refusal: done.set_result(None)
            )
            await done

    def announce_removed(self, log: str) -> None:
        """Tell other nodes that the name of a log may be used again: it is in the store no more."""
        self._requests.broadcast(PeerMessageType.LOGS, [[log, None]])

    def on_logs(self, session: str, id: int, rows: Iterable[Declaration]) -> None:
        """Learn what another node declared or removed."""
        for name, attributes in rows:
            self._store_recovery.learn(name, attributes)
        self._peers.confirm(session, id)
