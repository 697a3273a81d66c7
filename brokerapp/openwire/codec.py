"""Encodes and decodes the commands of one connection, and cuts what arrives into frames. Without I/O."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from brokerapp.errors import OpenWireError
from brokerapp.openwire.commands import DataStructure
from brokerapp.openwire.commands.data_types import MAX_VERSION, MIN_VERSION
from brokerapp.openwire.encoding.loose_decoding import loose_decoders
from brokerapp.openwire.encoding.loose_encoding import loose_encoders
from brokerapp.openwire.encoding.state import WireState
from brokerapp.openwire.encoding.table import CLASSES

#: The longest frame, bytes, where nothing else is said (wireFormat.maxFrameSize, ActiveMQ's default).
DEFAULT_MAX_FRAME_SIZE = 100 * 1024 * 1024
_PREFIX = struct.Struct(">I")


class Codec:
    """The codec of one connection in one version: the loose encoding, without a cache of values.

    A WireFormatInfo is the same in all versions: any codec encodes and decodes it.
    """

    __slots__ = ("_decoders", "_encoders", "_state", "max_frame_size", "version")

    def __init__(
        self,
        version: int = MAX_VERSION,
        *,
        max_frame_size: int = DEFAULT_MAX_FRAME_SIZE,
        stack_trace_enabled: bool = False,
    ) -> None:
        """Make a codec; what both sides said of versions and stack traces decides.

        Raises OpenWireError for a version that is not supported.
        """
        if not MIN_VERSION <= version <= MAX_VERSION:
            raise OpenWireError(f"version {version} is not supported: expected {MIN_VERSION} to {MAX_VERSION}")
        self.version, self.max_frame_size = version, max_frame_size
        self._decoders, self._encoders = loose_decoders(version, False), loose_encoders(version, False)
        self._state = WireState(stack_trace_enabled)

    def encode(self, command: DataStructure) -> bytes:
        """Return the bytes of a command, with their number before them.

        Raises OpenWireError for a command that is not in the version, too long, or whose fields hold what does not
        fit into them.
        """
        parts = [b""]
        try:
            self._encoders[command.data_type](command, parts.append, self._state)
        except struct.error as error:
            raise OpenWireError(f"{type(command).__name__} holds a value that does not fit: {error}") from None
        size = sum(map(len, parts))
        if size > self.max_frame_size:
            raise _too_long(size, self.max_frame_size)
        parts[0] = _PREFIX.pack(size)
        return b"".join(parts)

    def decode(self, frame: bytes | bytearray | memoryview) -> Any:
        """Return the command of a frame, which is given without the number of its bytes. Raises OpenWireError."""
        data = frame if type(frame) is bytes else bytes(frame)
        size = len(data)
        try:
            command, end = self._decoders[data[0]](data, 1, self._state, 0)
        except (IndexError, struct.error):
            end = size + 1
        if end == size:
            return command
        if not size:
            raise OpenWireError("a frame is empty")
        name = CLASSES[data[0]].__name__
        if end > size:
            raise OpenWireError(f"a {name} ends too early: it is longer than its frame of {size} bytes")
        raise OpenWireError(f"{size - end} bytes follow a {name} in its frame of {size} bytes")


class FrameSplitter:
    """Cuts the bytes that a connection receives into frames."""

    __slots__ = ("_limit", "_needed", "_received")

    def __init__(self, max_frame_size: int = DEFAULT_MAX_FRAME_SIZE) -> None:
        self._limit = max_frame_size
        self._received = bytearray()
        #: So many bytes must have been received before there is a frame to look for.
        self._needed = _PREFIX.size

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[bytes]:
        """Yield the frames that are whole now, without the number of their bytes. To be read to its end.

        Raises OpenWireError for a frame that is longer than allowed, as soon as its length is known and what came
        before was given; nothing can be read of the connection then.
        """
        received = self._received
        received += data
        if len(received) < self._needed:
            return
        pos, end = 0, len(received)
        try:
            while True:
                self._needed = _PREFIX.size
                if end - pos < self._needed:
                    break
                (size,) = _PREFIX.unpack_from(received, pos)
                if size > self._limit:
                    raise _too_long(size, self._limit)
                self._needed += size
                if end - pos < self._needed:
                    break
                start, pos = pos + _PREFIX.size, pos + self._needed
                with memoryview(received) as view:
                    frame = bytes(view[start:pos])
                yield frame
        finally:
            del received[:pos]


def _too_long(size: int, limit: int) -> OpenWireError:
    return OpenWireError(f"a frame of {size} bytes exceeds the limit of {limit} bytes")
