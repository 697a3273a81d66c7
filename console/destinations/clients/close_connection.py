"""Closing connections, on a page or through the API: with the right to all that they use, and in the audit trail."""

from __future__ import annotations

from django.http import Http404, HttpRequest

from brokerapp.model.destination import Destination
from console.access.permissions import AnyUser, Verb, require, visible
from console.audit import trail
from console.broker.gateway import gateway
from console.destinations.clients.clients import Peer, seen_by


def known_peer(user: AnyUser, connection_id: str) -> Peer:
    """The connection, for somebody who may know of it. Raises Http404."""
    found = gateway().run(gateway().admin.peers.all([connection_id]))
    peers = seen_by(map(Peer.of, found), visible(user))
    if not peers:
        raise Http404(f"There is no connection {connection_id}: it has ended.")
    return peers[0]


def require_all(request: HttpRequest, peer: Peer) -> None:
    """Raise PermissionDenied without the right to close what uses all that this connection uses."""
    for destination in {*peer.destinations, *map(Destination.parse, peer.full.producing_to)}:
        require(request, Verb.CLOSE, destination)


def close(request: HttpRequest, peer: Peer) -> None:
    """End it; its client is told, and what it held goes back."""
    require_all(request, peer)
    about = {"client": peer.name, "user": peer.stats.user, "from": peer.stats.remote_address}
    with trail.recording(request, "close connection", peer.stats.id, before=about):
        gateway().run(gateway().admin.peers.close(peer.stats.id))
