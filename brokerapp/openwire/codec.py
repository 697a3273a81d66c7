"""Encodes and decodes the commands of one connection, and cuts what arrives into frames. Without I/O."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any

from brokerapp.errors import OpenWireError
from brokerapp.openwire.commands import DataStructure
from brokerapp.openwire.commands.data_types import MAX_VERSION, MIN_VERSION, WIRE_FORMAT_INFO
from brokerapp.openwire.encoding.compiled import CompiledFunctions
from brokerapp.openwire.encoding.loose_decoding import loose_decoders
from brokerapp.openwire.encoding.loose_encoding import loose_encoders
from brokerapp.openwire.encoding.state import WireState
from brokerapp.openwire.encoding.table import CLASSES
from brokerapp.openwire.encoding.tight_decoding import Decoder, tight_decoders
from brokerapp.openwire.encoding.tight_encoding import tight_encoders
from brokerapp.openwire.encoding.tight_texts import decode_bits, encode_bits
from brokerapp.openwire.shapes.decoding import ShapeDecoder, compile_decoder
from brokerapp.openwire.shapes.encoding import ShapeEncoder, compile_encoder
from brokerapp.openwire.shapes.known_shapes import MAX_SHAPE_BYTES, KnownShapes

#: The longest frame, bytes, where nothing else is said (wireFormat.maxFrameSize, ActiveMQ's default).
DEFAULT_MAX_FRAME_SIZE = 100 * 1024 * 1024
_PREFIX = struct.Struct(">I")


@cache
def _shape_decoders(version: int, cached: bool) -> KnownShapes[ShapeDecoder]:
    """Return what is known of the shapes of commands that come, for all connections of this kind."""
    return KnownShapes()


@cache
def _shape_encoders(version: int, cached: bool) -> KnownShapes[ShapeEncoder]:
    """Return the same of commands that are sent."""
    return KnownShapes()


class Codec:
    """The codec of one connection, for what was agreed upon: the version, the encoding, and whether values are cached.

    A WireFormatInfo is the same in all versions and encodings: any codec encodes and decodes it.
    """

    __slots__ = (
        "_cached", "_decoders", "_encoders", "_last_shapes", "_shape_decoders", "_shape_encoders", "_state", "_tight",
        "max_frame_size", "version",
    )  # fmt: skip

    def __init__(
        self,
        version: int = MAX_VERSION,
        *,
        max_frame_size: int = DEFAULT_MAX_FRAME_SIZE,
        stack_trace_enabled: bool = False,
        tight: bool = False,
        cached: bool = False,
    ) -> None:
        """Make a codec; both sides of a connection need the same. Raises OpenWireError for an unknown version."""
        if not MIN_VERSION <= version <= MAX_VERSION:
            raise OpenWireError(f"version {version} is not supported: expected {MIN_VERSION} to {MAX_VERSION}")
        self.version, self.max_frame_size = version, max_frame_size
        self._cached = cached
        self._decoders, self._encoders = loose_decoders(version, cached), loose_encoders(version, cached)
        self._tight = (tight_decoders(version, cached), tight_encoders(version, cached)) if tight else None
        self._shape_decoders, self._shape_encoders = _shape_decoders(version, cached), _shape_encoders(version, cached)
        self._last_shapes: dict[
            int, ShapeEncoder
        ] = {}  # by type: that of the last command, which the next one may have
        self._state = WireState(stack_trace_enabled)

    def encode(self, command: DataStructure) -> bytes:
        """Return the bytes of a command, with their number before them. With a cache, they must be sent.

        Raises OpenWireError for a command that is not in the version, too long, or whose fields hold what does not
        fit into them.
        """
        encode = self._last_shapes.get(command.data_type)
        if encode is not None:
            try:
                frame = encode(command, self._state, self.max_frame_size)
            except struct.error:  # said below, where it is known of which field
                frame = None
            if frame is not None:
                return frame
        if self._cached:
            self._state.sent.begin()
        try:
            parts = self._parts(command)
            size = sum(map(len, parts))
            if size > self.max_frame_size:
                raise _too_long(size, self.max_frame_size)
        except (struct.error, OpenWireError) as error:
            self._state.sent.take_back()
            if isinstance(error, OpenWireError):
                raise
            raise OpenWireError(f"{type(command).__name__} holds a value that does not fit: {error}") from None
        parts[0] = _PREFIX.pack(size)
        return b"".join(parts)

    def _parts(self, command: DataStructure) -> list[bytes]:
        """Return the bytes of a command in parts, behind an empty one."""
        data_type = command.data_type
        if self._tight is None or data_type == WIRE_FORMAT_INFO:
            parts = [b""]
            self._encoders[data_type](command, parts.append, self._state)
            return parts
        bits: list[bool] = []
        parts = [b"", bytes((data_type,)), b""]
        self._tight[1][data_type](command, bits.append, parts, self._state)
        parts[2] = encode_bits(bits)
        if not self._state.sent.has_added:  # else it will be another shape when it is known
            self._note_shape(command, parts[2])
        return parts

    def _note_shape(self, command: DataStructure, bits: bytes) -> None:
        """Expect that the next command of this type has the shape of this one, if that has a function."""
        shape = command.data_type, bits, getattr(getattr(command, "message", None), "data_type", None)
        known = self._shape_encoders
        encode = known.functions.get(shape) or known.note(
            shape, lambda: compile_encoder(command, bits, self.version, self._cached)
        )
        if encode is not None:
            self._last_shapes[command.data_type] = encode

    def decode(self, frame: bytes | bytearray | memoryview) -> Any:
        """Return the command of a frame, which is given without the number of its bytes. Raises OpenWireError."""
        data = frame if type(frame) is bytes else bytes(frame)
        size = len(data)
        try:
            if self._tight is None or data[0] == WIRE_FORMAT_INFO:
                command, end = self._decoders[data[0]](data, 1, self._state, 0)
            else:
                command, end = self._decode_tightly(data, self._tight[0])
        except (IndexError, struct.error, StopIteration):
            end = size + 1
        if end == size:
            return command
        if not size:
            raise OpenWireError("a frame is empty")
        name = CLASSES[data[0]].__name__
        if end > size:
            raise OpenWireError(f"a {name} ends too early: it is longer than its frame of {size} bytes")
        raise OpenWireError(f"{size - end} bytes follow a {name} in its frame of {size} bytes")

    def _decode_tightly(self, data: bytes, decoders: CompiledFunctions[Decoder]) -> tuple[Any, int]:
        decoder = decoders[data[0]]
        shape = data[: data[1] + 2]
        decode_shape = self._shape_decoders.functions.get(shape)
        if decode_shape is not None:
            try:
                found = decode_shape(data, self._state)
            except struct.error:
                found = None
            if found is not None:
                return found
        bits, pos = decode_bits(data, 1)
        decoded = decoder(data, pos, bits.__next__, self._state, 0)
        if len(tuple(islice(bits, 8))) == 8:
            raise OpenWireError(f"a {CLASSES[data[0]].__name__} has more truth values than its fields")
        if len(shape) < MAX_SHAPE_BYTES:
            self._shape_decoders.note(shape, lambda: compile_decoder(data, self.version, self._cached))
        return decoded


class FrameSplitter:
    """Cuts the bytes that a connection receives into frames."""

    __slots__ = ("_needed", "_received", "max_frame_size")

    def __init__(self, max_frame_size: int = DEFAULT_MAX_FRAME_SIZE) -> None:
        self.max_frame_size = max_frame_size  #: of the frames to come
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
                if size > self.max_frame_size:
                    raise _too_long(size, self.max_frame_size)
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
