"""Exchanges among nodes which consumers of bridges compete for the same messages.

Each node tells the others of its own, and each comes to the same choice by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from brokerapp.model.destination import Destination
from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.ports import BridgeBids


class BridgeBidExchange(NodeObserver):
    """Tells other nodes of the bids of local bridges, and takes theirs."""

    def __init__(self, *, peers: Peers, requests: NodeRequests, bids: BridgeBids) -> None:
        self._peers, self._requests, self._bids = peers, requests, bids

    def announce(self, target: Destination, key: str, bid: Sequence[Any] | None) -> None:
        """Tell all other nodes of one bid; None: it is withdrawn."""
        self._requests.broadcast(PeerMessageType.BRIDGE_BIDS, False, [(str(target), key, bid)])

    def introduce(self, session: str) -> None:
        """Tell a node of all local bids."""
        self._peers.send(session, PeerMessageType.BRIDGE_BIDS, 0, True, self._bids.local_bids())

    def on_bids(
        self, session: str, id: int, replace: bool, rows: Iterable[tuple[str, str, Sequence[Any] | None]]
    ) -> None:
        """Take bids of another node, all that it has if they `replace` the former ones."""
        self._bids.on_remote_bids(session, rows, replace=replace)
        self._peers.confirm(session, id)

    def on_member_removed(self, session: str) -> None:
        """Forget the bids of a node that is no member any more."""
        self._bids.forget(session)
