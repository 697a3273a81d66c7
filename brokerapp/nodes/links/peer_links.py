"""Connect each two nodes of a broker by one TCP connection.

Of two nodes the one whose session sorts first calls. Each proves to the other that it knows the broker's secret, which
is in the store, and that it means this other: the secret itself is never sent. Over TLS the proof is of this
connection, too: it names the certificates of both ends, so that nobody between them can pass it on. Who has not proved
that yet can make a node keep little. What was told while a connection was lost is lost with it; both ends
begin anew when there is one again.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import msgpack

from brokerapp.nodes.links.members import NodeMembers
from brokerapp.nodes.links.protocol import PeerMessageType

logger = logging.getLogger(__name__)

#: Seconds between two calls of a node that does not answer, and for which a caller may be silent before it is known.
RETRY_SECONDS = 0.1
HANDSHAKE_SECONDS = 5.0
#: Bytes of one message_type, and bytes that may wait for a node that does not read: past them the link is given up.
MAX_MESSAGE = 256 * 1024 * 1024
MAX_UNSENT = 512 * 1024 * 1024
#: Bytes that somebody may say before it is known who that is: a greeting takes some hundred.
MAX_HANDSHAKE = 4 * 1024
#: Callers who are not known yet, at a time. A node is known in milliseconds: of more, the one who waits longest goes.
MAX_UNAUTHENTICATED = 100


#: Digests of the certificates of the caller and of who is called; "" without TLS.
CertificateDigests = tuple[bytes, bytes]


class NodeLinkListener(Protocol):
    """Is told of links, and of messages that come over them."""

    def on_link_up(self, session: str) -> None:
        """A link to the node of this session is up."""

    def on_link_down(self, session: str) -> None:
        """It is down."""

    def on_message(self, session: str, message_type: PeerMessageType, fields: list[Any]) -> None:
        """That node sent a message."""


class UnauthenticatedPeer(Protocol):
    """A caller that has not proved yet to be a node."""

    def close(self) -> None:
        """Close its connection."""


@dataclass(frozen=True, slots=True)
class LinkTls:
    """TLS of a node as server and as client. It shows the same certificate, here as DER, as either."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    certificate: bytes


def _certificate_digests(tls: LinkTls | None, transport: asyncio.BaseTransport, *, calls: bool) -> CertificateDigests:
    """Return the digests of both certificates, as this end sees them; `calls`: this end is the caller."""
    if tls is None:
        return b"", b""
    own, theirs = tls.certificate, transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
    caller, called = (own, theirs) if calls else (theirs, own)
    return hashlib.sha256(caller).digest(), hashlib.sha256(called).digest()


class NodeLinks:
    """The links of one node. With `tls` they are encrypted, and nodes without TLS are not linked with.

    `tls` is asked for each connection, as certificates are renewed.
    """

    def __init__(self, session: str, listener: NodeLinkListener, tls: Callable[[], LinkTls] | None = None) -> None:
        self.session, self.listener, self._tls = session, listener, tls
        self.secret = b""
        self.address = ""  #: where others reach it
        self._accept_task: asyncio.Task[None] | None = None
        self._links: dict[str, NodeLink] = {}
        self._unauthenticated: dict[UnauthenticatedPeer, None] = {}  # who waits longest first
        self._connect_tasks: dict[str, asyncio.Task[None]] = {}
        self._members = NodeMembers(0, (), session)
        self._former_sessions: set[str] = set()  # they are members never again, and may not know it yet

    async def listen(self, host: str) -> None:
        """Accept connections at a free port of this address."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, place = found[0]
        listening = socket.create_server(place[:2], family=family, backlog=MAX_UNAUTHENTICATED)
        listening.setblocking(False)
        address, port, *_ = listening.getsockname()
        self.address = f"{address}:{port}"
        self._accept_task = asyncio.create_task(self._accept(listening), name="nodes that call")

    async def _accept(self, listening: socket.socket) -> None:
        """Accept connections until cancelled."""
        with listening:
            while True:
                try:
                    called, _ = await asyncio.get_running_loop().sock_accept(listening)
                except OSError as error:  # such as too many open files
                    logger.warning("cannot accept connections of other nodes: %s", error)
                    await asyncio.sleep(RETRY_SECONDS)
                else:
                    LinkHandshake(self, called, self._tls() if self._tls is not None else None)

    def connect_to(self, members: NodeMembers) -> None:
        """Keep links to these members, and close all others."""
        self._former_sessions.update(each.session for each in self._members if each.session not in members)
        self._members = members
        for session in [each for each in self._links if each not in members]:
            self._links[session].close()
        for session in [each for each in self._connect_tasks if each not in members]:
            self._connect_tasks.pop(session).cancel()
        for each in members.others:
            if self.session < each.session and each.session not in self._connect_tasks:
                self._connect_tasks[each.session] = asyncio.create_task(
                    self._keep_connected(each.session, each.address)
                )

    async def _keep_connected(self, session: str, address: str) -> None:
        """Keep a connection to a node until cancelled."""
        host, _, port = address.rpartition(":")
        told = ""
        while True:
            try:
                async with asyncio.timeout(HANDSHAKE_SECONDS):
                    link = await self._call(session, host, int(port))
                await link.closed
            except ssl.SSLError as error:
                if str(error) != told:
                    logger.warning("node %s at %s has no trusted TLS certificate: %s", session, address, error)
                told = str(error)
            except (OSError, TimeoutError) as error:
                logger.debug("node %s at %s: %s", session, address, error)
            await asyncio.sleep(RETRY_SECONDS)

    async def _call(self, session: str, host: str, port: int) -> NodeLink:
        tls = self._tls() if self._tls is not None else None
        _, link = await asyncio.get_running_loop().create_connection(
            lambda: NodeLink(self, tls, wanted=session), host, port, ssl=tls.client if tls is not None else None
        )
        return link

    def send(self, session: str, message_type: PeerMessageType, *fields: Any) -> None:
        """Send a message to a node; it is lost while there is no link."""
        link = self._links.get(session)
        if link is not None:
            link.send(message_type, *fields)

    def is_linked(self, session: str) -> bool:
        """Return whether there is a link."""
        return session in self._links

    def unsent_bytes(self, session: str) -> int:
        """Return how many bytes wait for a node to read them."""
        link = self._links.get(session)
        return link.unsent_bytes if link is not None else 0

    def reconnect(self, session: str) -> None:
        """Close the link to a node; another one is made at once."""
        if (link := self._links.get(session)) is not None:
            link.close()

    def is_former_member(self, session: str) -> bool:
        """Return whether a node is a member no more: it may run, and not know that yet."""
        return session in self._former_sessions

    def add_unauthenticated(self, peer: UnauthenticatedPeer) -> None:
        """Count a caller that is not known yet; close the oldest one where there are too many."""
        self._unauthenticated[peer] = None
        if len(self._unauthenticated) > MAX_UNAUTHENTICATED:
            next(iter(self._unauthenticated)).close()

    def remove_unauthenticated(self, peer: UnauthenticatedPeer) -> None:
        """Count a caller no more: it is gone or known."""
        self._unauthenticated.pop(peer, None)

    def on_link_up(self, link: NodeLink) -> None:
        """Use a connection whose other end has proved who it is."""
        self.remove_unauthenticated(link)
        former = self._links.pop(link.peer, None)
        if former is not None:
            former.close()
            self.listener.on_link_down(link.peer)
        self._links[link.peer] = link
        self.listener.on_link_up(link.peer)

    def on_link_down(self, link: NodeLink) -> None:
        """Forget a connection that is closed."""
        self.remove_unauthenticated(link)
        if self._links.get(link.peer) is link:
            del self._links[link.peer]
            self.listener.on_link_down(link.peer)

    def proof(self, nonce: bytes, session: str, to: str, ends: CertificateDigests) -> bytes:
        """What only who knows the secret can say to this challenge: that it is `session`, means `to`, and sees these
        ends of the connection. Nobody can use it to be known elsewhere, or over another connection.
        """
        return hmac.new(self.secret, msgpack.packb((nonce, session, to, *ends)), hashlib.sha256).digest()

    def close(self) -> None:
        """Close all connections."""
        if self._accept_task is not None:
            self._accept_task.cancel()
        for caller in self._connect_tasks.values():
            caller.cancel()
        for link in [*self._links.values(), *self._unauthenticated]:
            link.close()


class LinkHandshake:
    """A caller before there is a NodeLink: it counts as unauthenticated, as a TLS handshake takes its time.

    TLS is spoken from the connection's first byte on. To begin it later (`start_tls`) comes too late under uvloop,
    which reads as soon as there is a connection: what the caller said by then was lost.
    """

    def __init__(self, links: NodeLinks, called: socket.socket, tls: LinkTls | None) -> None:
        self._peer_links, self._socket, self._tls = links, called, tls
        links.add_unauthenticated(self)
        self._task = asyncio.create_task(self._run(), name="TLS with who called")

    async def _run(self) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: NodeLink(self._peer_links, self._tls, doorstep=self), self._socket,
                ssl=self._tls.server if self._tls else None,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if self._tls else None,
            )  # fmt: skip
        except OSError as error:
            logger.debug("incoming connection without a trusted TLS certificate: %s", error)
        finally:
            self._peer_links.remove_unauthenticated(self)

    def close(self) -> None:
        """Close it at once."""
        self._task.cancel()


class NodeLink(asyncio.Protocol):
    """One connection. `peer` is the session of its other end, once that is proved.

    `wanted` is the session that is called; "": this node is, and the other end stood at a `doorstep`.
    """

    def __init__(
        self, links: NodeLinks, tls: LinkTls | None, wanted: str = "", doorstep: LinkHandshake | None = None
    ) -> None:
        self._peer_links, self._tls, self._wanted, self._handshake_before = links, tls, wanted, doorstep
        self._loop = asyncio.get_running_loop()
        self.closed = self._loop.create_future()
        self.peer = ""
        self._nonce = secrets.token_bytes(16)
        self._handshake_bytes_left = MAX_HANDSHAKE
        self._unpacker = msgpack.Unpacker(max_buffer_size=MAX_MESSAGE, use_list=True)
        self._packer = msgpack.Packer()
        self._out: list[bytes] = []
        self._queued_bytes = 0  #: bytes of these

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._digests = _certificate_digests(self._tls, transport, calls=bool(self._wanted))
        self._handshake_timeout = self._loop.call_later(HANDSHAKE_SECONDS, self._on_handshake_timeout)
        if self._handshake_before is not None:
            self._peer_links.remove_unauthenticated(self._handshake_before)
            self._peer_links.add_unauthenticated(self)
            self.send(PeerMessageType.CHALLENGE, self._nonce)

    def data_received(self, data: bytes) -> None:
        try:
            if not self.peer:
                data = self._read_handshake(data)
            self._read(data)
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            logger.warning("a node said what cannot be understood: %s", error)
            self.close()

    def _read_handshake(self, data: bytes) -> bytes:
        """Read what an unknown caller may send; return what follows once it is known."""
        greeting, rest = data[: self._handshake_bytes_left], data[self._handshake_bytes_left :]
        self._handshake_bytes_left -= len(greeting)
        self._read(greeting)
        if not self.peer and not self._handshake_bytes_left:
            raise ValueError(f"more than {MAX_HANDSHAKE} bytes from who is not known yet")
        return rest

    def _read(self, data: bytes) -> None:
        self._unpacker.feed(data)
        for number, *fields in self._unpacker:
            self._handle(PeerMessageType(number), fields)

    def connection_lost(self, _error: Exception | None) -> None:
        self._handshake_timeout.cancel()
        if not self.closed.done():
            self.closed.set_result(None)
        self._peer_links.on_link_down(self)

    # -- messages

    def send(self, message_type: PeerMessageType, *fields: Any) -> None:
        """Send a message, with all others of this tick."""
        if not self._out:
            self._loop.call_soon(self._flush)
        packed = self._packer.pack((int(message_type), *fields))
        self._out.append(packed)
        self._queued_bytes += len(packed)

    @property
    def unsent_bytes(self) -> int:
        """Bytes that the other end did not take yet, with those of this tick."""
        return self._queued_bytes + self._transport.get_write_buffer_size()

    def _flush(self) -> None:
        out, self._out, self._queued_bytes = self._out, [], 0
        if self._transport.is_closing():
            return
        self._transport.write(b"".join(out))
        if self.unsent_bytes > MAX_UNSENT:
            logger.warning("node %s does not read from its link: the link is closed", self.peer)
            self._transport.abort()

    def _handle(self, message_type: PeerMessageType, fields: list[Any]) -> None:
        if self.peer:
            self._peer_links.listener.on_message(self.peer, message_type, fields)
        else:
            self._authenticate(message_type, fields)

    def _authenticate(self, message_type: PeerMessageType, fields: list[Any]) -> None:
        """Called: challenge, be told who it is, say who we are. The caller does the same the other way round."""
        links, wanted = self._peer_links, self._wanted
        if message_type is PeerMessageType.CHALLENGE and wanted:
            self.send(
                PeerMessageType.HELLO,
                links.session,
                links.proof(fields[0], links.session, wanted, self._digests),
                self._nonce,
            )
            return
        if message_type is not (PeerMessageType.WELCOME if wanted else PeerMessageType.HELLO):
            raise ValueError(f"{message_type.name} from who is not known yet")
        session, proof, *nonce = fields
        if wanted and session != wanted:
            raise ValueError(f"{session!r} where {wanted} was called")
        if not hmac.compare_digest(proof, links.proof(self._nonce, session, links.session, self._digests)):
            raise ValueError("a wrong proof")
        if links.is_former_member(session):
            self.close()
            return
        if nonce:
            self.send(
                PeerMessageType.WELCOME, links.session, links.proof(nonce[0], links.session, session, self._digests)
            )
        self.peer = session
        links.on_link_up(self)

    def _on_handshake_timeout(self) -> None:
        if not self.peer:
            self.close()

    def close(self) -> None:
        """Close it at once."""
        self._transport.abort()
