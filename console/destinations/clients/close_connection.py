"""Closes connections for pages and the REST API. Requires the permission for every destination in use."""

from __future__ import annotations

from django.http import Http404, HttpRequest

from brokerapp.model.destination import Destination
from console.access.permissions import AnyUser, Permission, require, visible
from console.audit import trail
from console.broker.gateway import gateway
from console.destinations.clients.clients import ConnectionView, visible_connections


def get_connection(user: AnyUser, connection_id: str) -> ConnectionView:
    """Return a connection that the user may see. Raises Http404."""
    found = gateway().run(gateway().admin.peers.all([connection_id]))
    peers = visible_connections(map(ConnectionView.from_stats, found), visible(user))
    if not peers:
        raise Http404(f"Connection {connection_id} not found. It may already be closed.")
    return peers[0]


def require_close(request: HttpRequest, peer: ConnectionView) -> None:
    """Raise PermissionDenied unless the user may close consumers of every destination this connection uses."""
    for destination in {*peer.destinations, *map(Destination.parse, peer.details.producing_to)}:
        require(request, Permission.CLOSE, destination)


def close(request: HttpRequest, peer: ConnectionView) -> None:
    """Close a connection and write an audit entry. Its in-flight messages are requeued."""
    require_close(request, peer)
    about = {"client": peer.name, "user": peer.stats.user, "from": peer.stats.remote_address}
    with trail.recording(request, "close connection", peer.stats.id, before=about):
        gateway().run(gateway().admin.peers.close(peer.stats.id))
