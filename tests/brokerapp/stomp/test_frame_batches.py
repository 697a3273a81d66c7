"""Runs: what follows each other and is alike comes out at once, and says the same as frame by frame."""

import pytest

from brokerapp.stomp.frame_batches import AckFrameBatch, SendFrameBatch
from brokerapp.stomp.frames import Frame, FrameParser


def feed(*pieces, version="1.2", **options):
    parser = FrameParser(**options)
    parser.version = version
    return [frame for piece in pieces for frame in parser.feed(piece)]


def bodies_of(found):
    return [found.body] if isinstance(found, Frame) else found.bodies


def send(number, body, extra=""):
    return f"SEND\ndestination:/queue/a\nreceipt:r-{number}\n{extra}content-length:{len(body)}\n\n{body}\0\n".encode()


def test_sends_that_differ_in_receipt_length_and_body_are_one_run():
    [run] = feed(b"".join(send(number, "x" * number) for number in range(5)))
    assert isinstance(run, SendFrameBatch)
    assert (run.receipts, run.bodies) == ([f"r-{n}" for n in range(5)], [b"x" * n for n in range(5)])
    assert run.head.headers["destination"] == "/queue/a"


def test_a_run_ends_where_another_header_differs_and_its_head_is_known_again_later():
    red, blue = send(1, "a", "colour:red\n"), send(2, "bb", "colour:blue\n")
    runs = feed(red + red + blue + red + red)
    assert [(run.head.headers["colour"], len(run.bodies)) for run in runs] == [("red", 2), ("blue", 1), ("red", 2)]
    assert runs[0].head is runs[2].head is feed(red + red)[0].head


def test_a_lone_send_is_a_run_only_where_its_head_is_known():
    red, blue = send(1, "a", "colour:red\n"), send(2, "bb", "colour:blue\n")
    alone, together, known, other = feed(red, red + red, red, blue)
    assert [type(each) for each in (alone, together, known, other)] == [Frame, SendFrameBatch, SendFrameBatch, Frame]


def test_a_run_ends_with_the_last_whole_frame_and_goes_on_with_the_next_read():
    data = send(1, "one") + send(2, "two") + send(3, "three")
    for cut in range(len(data)):
        found = feed(data[:cut], data[cut:])
        assert [body for each in found for body in bodies_of(each)] == [b"one", b"two", b"three"]


def test_escapes_in_a_receipt_are_undone():
    [run] = feed(b"SEND\ndestination:a\nreceipt:ID\\c1\n\n\0SEND\ndestination:a\nreceipt:\\\\2\n\n\0")
    assert run.receipts == ["ID:1", "\\2"]


def test_a_body_may_hold_nuls_where_its_length_is_told_and_what_looks_like_a_frame():
    body = "a\0b" + send(9, "no").decode()
    [run] = feed(send(1, body) + send(2, "plain"))
    assert run.bodies == [body.encode(), b"plain"]


#: Why, and what is left to the frame parser.
NOT_IN_RUNS = [
    ("a repeated receipt", b"SEND\ndestination:a\nreceipt:1\nreceipt:2\n\n\0"),
    ("carriage returns", b"SEND\r\ndestination:a\r\n\r\n\0"),
    ("a receipt that is not ASCII", "SEND\ndestination:a\nreceipt:é\n\n\0".encode()),
    ("a length that is not plain", b"SEND\ndestination:a\ncontent-length: 1\n\nx\0"),
    ("an ACK with a transaction", b"ACK\nid:1-1\ntransaction:t\n\n\0"),
    ("an ACK with an escape", b"ACK\nid:a\\cb\n\n\0"),
]


@pytest.mark.parametrize("data", [data for _, data in NOT_IN_RUNS], ids=[name for name, _ in NOT_IN_RUNS])
def test_what_is_less_plain_comes_frame_by_frame(data):
    assert all(isinstance(each, Frame) for each in feed(data + data))
    assert len(feed(data + data)) == 2


def test_nothing_comes_in_runs_in_1_0_which_trims_values():
    found = feed(send(1, "x") + b"ACK\nid:1-1\n\n\0", version="1.0")
    assert [type(each) for each in found] == [Frame, Frame]


def test_plain_acks_are_one_run_whatever_line_ends_are_between_them():
    assert feed(b"ACK\nid:1-1\n\n\0ACK\nid:1-2\n\n\0\n\r\nACK\nid:2-1\n\n\0") == [AckFrameBatch(["1-1", "1-2", "2-1"])]


def test_a_body_past_the_limit_is_refused_behind_a_run_too():
    with pytest.raises(Exception, match="exceeds the limit of 10 bytes"):
        feed(send(1, "x" * 10) + send(2, "x" * 11), max_body=10)
