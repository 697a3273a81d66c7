"""Transports of the load generator: plain TCP, TLS, and WebSocket with a message for each frame, as browsers send them.

All are sockets as far as the loop cares: they raise BlockingIOError where a plain one would.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import os
import socket
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

#: A broker that does not answer within this has failed.
ANSWER_SECONDS = 30
#: Most bytes of a TLS record: a read with room for one leaves nothing behind where no selector sees it.
_RECORD = 1 << 14
_NUL = b"\0"


def plain(address: tuple[str, int]) -> socket.socket:
    """A TCP connection."""
    connected = socket.create_connection(address, timeout=ANSWER_SECONDS)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


class Tls:
    """TLS 1.3, or what is agreed upon; whoever answers is believed."""

    def __init__(self, address: tuple[str, int]) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._socket = context.wrap_socket(plain(address))
        self.fileno, self.close, self.setblocking = self._socket.fileno, self._socket.close, self._socket.setblocking
        self.sendall, self.recv = self._socket.sendall, self._socket.recv

    def send(self, data: memoryview) -> int:
        """How many bytes of it were taken."""
        try:
            return self._socket.send(data)
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError) as full:
            raise BlockingIOError from full

    def recv_into(self, view: memoryview) -> int:
        """All that is here, as far as there is room for whole records; 0 when the connection has ended."""
        count = 0
        while count == 0 or len(view) - count >= _RECORD:
            try:
                got = self._socket.recv_into(view[count:])
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as empty:
                if count:
                    break
                raise BlockingIOError from empty
            if not got:
                break
            count += got
        return count


class WebSocket:
    """A client's end of RFC 6455. What it sends is masked with zeros: correct, and free."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = plain(address)
        self.fileno, self.close, self.setblocking = self._socket.fileno, self._socket.close, self._socket.setblocking
        self._in, self._ready = bytearray(), bytearray()  # frames as they came, and what they held
        self._out, self._taken = b"", 0  # what is being sent, and how much of the caller's bytes that is
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            f"GET / HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Protocol: v12.stomp\r\n\r\n".encode()
        )
        while b"\r\n\r\n" not in self._in:
            self._read()
        head, _, rest = bytes(self._in).partition(b"\r\n\r\n")
        if b" 101 " not in head:
            raise OSError(f"no WebSocket: {head[:200]!r}")
        self._in = bytearray(rest)

    def _read(self, size: int = 1 << 18) -> None:
        data = self._socket.recv(size)
        if not data:
            raise OSError("the broker closed a connection")
        self._in += data

    def sendall(self, data: bytes) -> None:
        """All of it, a message for each frame."""
        self._socket.sendall(_messages(data))

    def send(self, data: memoryview) -> int:
        """All of `data`, whole frames, or BlockingIOError: then it is called again with the same."""
        if not self._out:
            self._out, self._taken = _messages(bytes(data)), len(data)
        self._out = self._out[self._socket.send(self._out) :]
        if self._out:
            raise BlockingIOError
        return self._taken

    def recv(self, size: int) -> bytes:
        """What came in messages, waiting for some."""
        while not self._ready:
            self._read()
            self._unpack()
        data = bytes(self._ready[:size])
        del self._ready[:size]
        return data

    def recv_into(self, view: memoryview) -> int:
        """What came in messages.

        No more is read than there is room for: what stayed behind here no selector would see.
        """
        if len(self._ready) < len(view):
            self._read(max(1, len(view) - len(self._ready) - len(self._in)))
            self._unpack()
        count = min(len(view), len(self._ready))
        if not count:
            raise BlockingIOError
        view[:count] = self._ready[:count]
        del self._ready[:count]
        return count

    def _unpack(self) -> None:
        """Take the whole messages out of what came; those that are none of the application's hold nothing."""
        position, data = 0, self._in
        while len(data) - position >= 2:
            length, start = data[position + 1], position + 2
            if length >= 126:
                start += 2 if length == 126 else 8
                length = int.from_bytes(data[position + 2 : start]) if len(data) >= start else len(data)
            if len(data) < start + length:
                break
            if data[position] & 0x08 == 0:
                self._ready += data[start : start + length]
            position = start + length
        del data[:position]


def _messages(data: bytes) -> bytes:
    """A masked text message for each STOMP frame."""
    return b"".join(_head(len(each) + 1) + each + _NUL for each in data.split(_NUL)[:-1])


def _head(length: int) -> bytes:
    size = bytes([128 | length]) if length < 126 else b"\xfe" + length.to_bytes(2)
    return b"\x81" + size + b"\0\0\0\0"


def write_certificate(path: Path) -> None:
    """A key and a certificate for this machine that its own key signed."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "bench")])
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(here, critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding, unencrypted = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, unencrypted)
    path.write_bytes(private + certificate.public_bytes(encoding))
