import pytest

from benchmarks.protocol.frames import NUL, ack_block, ack_ids, end_of_frames, frame, send_block

MESSAGES = b"".join(
    frame("MESSAGE", {"ack": f"ID\\c{number}", "subscription": 1, "destination": "/queue/a"}, b"x" * 20) + b"\n"
    for number in range(3)
)


def test_a_block_holds_one_send_frame_for_each_set_of_headers():
    block = send_block([{"destination": "/queue/a", "receipt": 0}, {"destination": "/queue/a", "receipt": 1}], b"body")
    assert block == (
        b"SEND\ndestination:/queue/a\nreceipt:0\ncontent-length:4\n\nbody\0"
        b"SEND\ndestination:/queue/a\nreceipt:1\ncontent-length:4\n\nbody\0"
    )


def test_every_delivery_is_acknowledged_by_a_frame_of_its_own_with_its_escapes_kept():
    ids = ack_ids(MESSAGES, len(MESSAGES))
    assert ack_block(ids) == b"ACK\nid:ID\\c0\n\n\0ACK\nid:ID\\c1\n\n\0ACK\nid:ID\\c2\n\n\0"


def test_an_ack_header_past_the_end_is_left_for_later():
    end = MESSAGES.index(NUL) + 1
    assert ack_ids(MESSAGES, end) == [b"ID\\c0"]


@pytest.mark.parametrize(
    ("buffer", "end"),
    [(b"", 0), (b"RECEIPT\nrec", 0), (b"A\n\n\0", 4), (b"A\n\n\0\nB\n", 4), (b"A\n\n\0B\n\n\0", 8)],
)
def test_whole_frames_end_with_the_last_nul(buffer, end):
    assert end_of_frames(bytearray(buffer), len(buffer)) == end


def test_bytes_past_what_was_received_are_no_frames():
    assert end_of_frames(bytearray(b"A\n\n\0B\n\n\0"), 6) == 4
