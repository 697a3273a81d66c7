"""Test the cutting of received bytes into frames."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerapp.errors import OpenWireError
from brokerapp.openwire.codec import DEFAULT_MAX_FRAME_SIZE, FrameSplitter


def prefixed(*frames):
    """The bytes of frames on a connection."""
    return b"".join(struct.pack(">I", len(each)) + each for each in frames)


@given(frames=st.lists(st.binary(max_size=20)), sizes=st.lists(st.integers(1, 30), min_size=1))
def test_frames_are_the_same_however_the_bytes_arrive(frames, sizes):
    data, splitter, found, pos = prefixed(*frames), FrameSplitter(), [], 0
    while pos < len(data):
        size = sizes[len(found) % len(sizes)]
        found += splitter.feed(data[pos : pos + size])
        pos += size
    assert found == frames


def test_a_long_frame_in_many_parts_is_put_together_once():
    frame = bytes(range(256)) * 4096
    data, splitter = prefixed(frame, b"next"), FrameSplitter()
    found = [each for pos in range(0, len(data), 1000) for each in splitter.feed(data[pos : pos + 1000])]
    assert found == [frame, b"next"]


@pytest.mark.parametrize("size", [11, 2**31, 2**32 - 1])
def test_a_frame_beyond_the_limit_is_refused_as_soon_as_its_length_is_known_after_those_before(size):
    frames = FrameSplitter(10).feed(prefixed(b"first", b"x" * 10) + struct.pack(">I", size))
    assert (next(frames), next(frames)) == (b"first", b"x" * 10)
    with pytest.raises(OpenWireError, match=f"a frame of {size} bytes exceeds the limit of 10 bytes"):
        next(frames)


def test_without_a_limit_of_its_own_a_frame_has_that_of_activemq():
    assert list(FrameSplitter().feed(struct.pack(">I", DEFAULT_MAX_FRAME_SIZE))) == []
    with pytest.raises(OpenWireError):
        list(FrameSplitter().feed(struct.pack(">I", DEFAULT_MAX_FRAME_SIZE + 1)))
