"""Feed the codec of OpenWire damaged frames by hand or at night, `python -m tests.fuzz_openwire --frames 1000000`.

Random commands of every type and version are encoded in any encoding and damaged. Each must be decoded, or refused by
an OpenWireError; what was decoded can be encoded; nothing takes long. Other frames are printed in hexadecimal.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from random import Random

from brokerapp.errors import OpenWireError
from brokerapp.openwire.codec import Codec
from brokerapp.openwire.commands import MessageCommand
from brokerapp.openwire.marshalled_values import decode_map, decode_stream, encode_map
from brokerapp.openwire.message_content import decode_text_content, inflate, object_class_name
from tests.brokerapp.openwire.random_commands import VERSIONS, RandomCommands, random_text

#: Seconds of CPU that a damaged frame may take: a thousand times what a sound one does.
LONGEST = 0.25
#: Damaged frames that are made of one that is sound.
DAMAGES = 50
#: Values that stand next to a limit of lengths, counts, flags and types.
INTERESTING = (b"\0", b"\1", b"\xff", b"\x7f\xff", b"\x80\0", b"\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0")


def damage(random: Random, frame: bytes, other: bytes) -> bytes:
    """Return the frame with one to four damages, some with bytes of another one."""
    data = bytearray(frame)
    for _ in range(random.randint(1, 4)):
        at, end = random.randrange(len(data) + 1), random.randrange(len(data) + 1)
        value = random.choice((*INTERESTING, random.randbytes(1), random.randbytes(4), other[at : at + 8]))
        match random.randrange(5):
            case 0 | 1:
                data[at : at + len(value)] = value
            case 2:
                data[at:at] = value
            case 3:
                del data[at : at + random.randint(1, 8)]
            case 4:
                data = data[:at] + (other[end:] if random.random() < 0.5 else data[min(at, end) :])
    return bytes(data)


def check(codec: Codec, frame: bytes) -> bool:
    """Return whether a frame can be decoded. Raises AssertionError, or whatever the codec raises that it should not."""
    started = time.thread_time()
    try:
        command = codec.decode(frame)
    except OpenWireError:
        command = None
    if command is not None:
        codec.encode(command)
    if isinstance(command, MessageCommand):
        check_contents(command)
    took = time.thread_time() - started
    assert took < LONGEST, f"it took {took:.3f} s"
    return command is not None


def check_contents(message: MessageCommand) -> None:
    """Decode what a message holds, of whatever type it is."""
    content, properties = message.content or b"", message.marshalled_properties or b""
    object_class_name(content)
    for decode in (
        lambda: decode_map(properties),
        lambda: decode_map(content),
        lambda: decode_stream(content),
        lambda: decode_text_content(content),
        lambda: inflate(message.data_type, content, 100_000),
    ):
        try:
            decode()
        except OpenWireError:
            continue


def sound_frame(random: Random, codec: Codec, *, causes: bool) -> bytes:
    """Return a random command, encoded; of messages the content and properties are maps."""
    command = RandomCommands(random, codec.version, causes).any()
    if isinstance(command, MessageCommand):
        values = {random_text(random): random.choice(([1, {"a": None}], random_text(random), 1.5)) for _ in range(3)}
        command.content = command.marshalled_properties = encode_map(values)
    return codec.encode(command)[4:]


def run(seed: int, frames: int) -> tuple[int, int]:
    """Check so many damaged frames; return how many were decoded, and how many went wrong."""
    random, decoded, wrong = Random(seed), 0, 0
    frame = b"\x0a\0\0\0\1\0"
    for done in range(frames):
        if done % DAMAGES == 0:
            traces, tight, cached = (random.random() < 0.5 for _ in range(3))
            codec = Codec(random.choice(VERSIONS), stack_trace_enabled=traces, tight=tight, cached=cached)
            other, frame = frame, sound_frame(random, codec, causes=traces)
        damaged = damage(random, frame, other)
        try:
            decoded += check(codec, damaged)
        except Exception:
            wrong += 1
            sys.stdout.write(
                f"version {codec.version}, tight {tight}, cached {cached}: {damaged.hex()}\n{traceback.format_exc()}\n"
            )
    return decoded, wrong


def main() -> int:
    """Exit status 0 when nothing went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_openwire", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="gives the frames: the same each time")
    parser.add_argument("--frames", type=int, default=1_000_000, help="how many are checked")
    options = parser.parse_args()
    started = time.thread_time()
    decoded, wrong = run(options.seed, options.frames)
    took = time.thread_time() - started
    sys.stdout.write(f"{options.frames} frames in {took:.0f} s: {decoded} decoded, {wrong} wrong\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
