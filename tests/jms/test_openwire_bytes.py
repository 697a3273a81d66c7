"""Compare the codec with the classes of ActiveMQ's client: the same bytes for random commands of every type."""

from __future__ import annotations

import struct
import subprocess
from dataclasses import dataclass
from random import Random

import pytest

from brokerapp.openwire.codec import Codec
from brokerapp.openwire.commands.data_types import MAX_VERSION, WIRE_FORMAT_INFO
from brokerapp.openwire.marshalled_values import decode_map, encode_map
from tests.brokerapp.openwire.random_commands import VERSIONS, RandomCommands, types_of
from tests.jms.java_programs import compile_program, needs_java_client

pytestmark = [needs_java_client, pytest.mark.slow]
#: Random commands of each type and version.
ROUNDS = [2, pytest.param(6, marks=pytest.mark.long)]
SEED = 20261123


@dataclass(frozen=True)
class Agreement:
    """What both sides of a connection agreed upon."""

    tight: bool = False
    cached: bool = False
    stack_traces: bool = False

    def codec(self, version: int) -> Codec:
        """Return the codec of one side."""
        return Codec(version, tight=self.tight, cached=self.cached, stack_trace_enabled=self.stack_traces)


class JavaCodec:
    """The program that encodes and decodes with ActiveMQ's classes."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def random_frames(self, version: int, agreement: Agreement, *, seed: int, rounds: int) -> list[bytes]:
        """Return what Java makes of random commands of each type, with the number of bytes before each."""
        self._ask(b"r", version, agreement, struct.pack(">qi", seed, rounds))
        (count,) = self._read(">i")
        return [self._bytes(self._read(">i")[0]) for _ in range(count)]

    def again(self, version: int, agreement: Agreement, frames: list[bytes]) -> list[bytes | str]:
        """Return what Java encodes of what it decodes of frames, or what is wrong with one."""
        data = b"".join(struct.pack(">i", len(each)) + each for each in frames)
        self._ask(b"m", version, agreement, struct.pack(">i", len(frames)) + data)
        answers: list[bytes | str] = []
        for _ in frames:
            (size,) = self._read(">i")
            answers.append(self._bytes(size) if size >= 0 else self._bytes(self._read(">H")[0]).decode())
        return answers

    def random_maps(self, *, seed: int, count: int) -> list[bytes]:
        """Return what Java makes of random maps of typed values."""
        self._ask(b"v", MAX_VERSION, Agreement(), struct.pack(">qi", seed, count))
        return [self._bytes(self._read(">i")[0]) for _ in range(count)]

    def stop(self) -> None:
        """End the program."""
        self._process.stdin.close()
        self._process.wait(timeout=20)
        self._process.stdout.close()

    def _ask(self, what: bytes, version: int, agreement: Agreement, rest: bytes) -> None:
        agreed = struct.pack(">b???", version, agreement.tight, agreement.cached, agreement.stack_traces)
        self._process.stdin.write(what + agreed + rest)
        self._process.stdin.flush()

    def _read(self, layout: str) -> tuple:
        return struct.unpack(layout, self._bytes(struct.calcsize(layout)))

    def _bytes(self, size: int) -> bytes:
        data = self._process.stdout.read(size)
        assert len(data) == size, "the program ended"
        return data


@pytest.fixture(scope="module")
def java():
    program = JavaCodec(compile_program("OpenWireCommands"))
    yield program
    program.stop()


#: Both encodings, with and without a cache; stack traces with two of them.
AGREEMENTS = {
    "loose": Agreement(),
    "loose and cached": Agreement(cached=True, stack_traces=True),
    "tight": Agreement(tight=True, stack_traces=True),
    "tight and cached": Agreement(tight=True, cached=True),
}


@pytest.mark.parametrize("agreement", AGREEMENTS.values(), ids=AGREEMENTS)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("rounds", ROUNDS)
def test_what_java_encodes_is_decoded_and_encoded_to_the_same_bytes(java, version, agreement, rounds):
    codec = agreement.codec(version)
    frames = java.random_frames(version, agreement, seed=SEED + version, rounds=rounds)
    assert {each[4] for each in frames} == set(types_of(version))
    for frame in frames:
        if frame[4] == WIRE_FORMAT_INFO and agreement.tight:
            continue  # it is sent before anything is agreed upon: Java would now encode it as all others
        command = codec.decode(frame[4:])
        assert codec.encode(command) == frame, command


@pytest.mark.parametrize("agreement", AGREEMENTS.values(), ids=AGREEMENTS)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("rounds", ROUNDS)
def test_java_decodes_what_is_encoded_and_encodes_it_to_the_same_bytes(java, version, agreement, rounds):
    codec, causes = agreement.codec(version), agreement.stack_traces
    commands = RandomCommands(Random(SEED + version), version, causes, whole_ids=agreement.cached).one_of_each(rounds)
    if agreement.tight:
        commands = [each for each in commands if each.data_type != WIRE_FORMAT_INFO]
    frames = [codec.encode(each) for each in commands]
    for command, frame, answer in zip(commands, frames, java.again(version, agreement, frames), strict=True):
        assert answer == frame, command


def test_what_java_makes_of_typed_values_is_decoded_and_encoded_to_the_same_bytes(java):
    for encoded in java.random_maps(seed=SEED, count=1000):
        values = decode_map(encoded)
        assert encode_map(values) == encoded, values
