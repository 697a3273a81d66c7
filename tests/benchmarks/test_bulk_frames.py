import pytest

from benchmarks.protocol.frames import NUL, ack_block, ack_ids, end_of_frames, frame, heads, message_numbers

MESSAGES = b"".join(
    frame("MESSAGE", {"ack": f"ID\\c{number}", "subscription": 1}, b'{"order":%d,"note":"%b"}' % (number, b"x" * 50))
    + b"\n"
    for number in range(10, 13)
)


def test_a_frame_has_its_headers_in_the_order_given():
    assert frame("SEND", {"destination": "/queue/a", "receipt": 0, "content-length": 4}, b"body") == (
        b"SEND\ndestination:/queue/a\nreceipt:0\ncontent-length:4\n\nbody\0"
    )


def test_every_delivery_is_acknowledged_by_a_frame_of_its_own_with_its_escapes_kept():
    ids = ack_ids(heads(MESSAGES, len(MESSAGES)))
    assert ack_block(ids) == b"ACK\nid:ID\\c10\n\n\0ACK\nid:ID\\c11\n\n\0ACK\nid:ID\\c12\n\n\0"


def test_every_message_is_known_by_the_number_in_its_body():
    assert message_numbers(heads(MESSAGES, len(MESSAGES))) == [b"10", b"11", b"12"]


def test_a_frame_without_a_body_ends_before_the_next_one():
    receipts = frame("RECEIPT", {"receipt-id": 1}) + frame("RECEIPT", {"receipt-id": 2}) + b"\n"
    assert heads(receipts + MESSAGES, len(receipts)).count(b"receipt-id") == 2


def test_what_is_past_the_end_is_left_for_later():
    end = MESSAGES.index(NUL) + 1
    assert ack_ids(heads(MESSAGES, end)) == [b"ID\\c10"]


@pytest.mark.parametrize(
    ("buffer", "end"),
    [(b"", 0), (b"RECEIPT\nrec", 0), (b"A\n\n\0", 4), (b"A\n\n\0\nB\n", 4), (b"A\n\n\0B\n\n\0", 8)],
)
def test_whole_frames_end_with_the_last_nul(buffer, end):
    assert end_of_frames(bytearray(buffer), len(buffer)) == end


def test_bytes_past_what_was_received_are_no_frames():
    assert end_of_frames(bytearray(b"A\n\n\0B\n\n\0"), 6) == 4
