"""Batches: SENDs, and plain ACKs, that follow each other come out at once, and say the same as frame by frame."""

import itertools
from contextlib import contextmanager
from dataclasses import replace
from zlib import crc32

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from brokerapp.errors import ProtocolError
from brokerapp.model.commands import RefusedSend
from brokerapp.stomp import frames, send_reader, send_shapes
from brokerapp.stomp.frame_batches import AckFrameBatch, SendFrame, SendFrameBatch
from brokerapp.stomp.frames import Frame, FrameParser
from brokerapp.stomp.send_heads import DECIDING, VARYING
from brokerapp.stomp.session import StompSession


def feed(*pieces, version="1.2", **options):
    parser = FrameParser(**options)
    parser.version = version
    return [frame for piece in pieces for frame in parser.feed(piece)]


def sends_in(found):
    """The SENDs of all batches."""
    return [send for batch in found for send in batch.frames]


def send(number, body, extra=""):
    return f"SEND\ndestination:/queue/a\nreceipt:r-{number}\n{extra}content-length:{len(body)}\n\n{body}\0\n".encode()


def test_sends_of_one_read_are_one_batch_whatever_they_say():
    [batch] = feed(b"".join(send(number, "x" * number, f"order:{number}\n" * (number % 2)) for number in range(5)))
    assert isinstance(batch, SendFrameBatch)
    assert [(each.receipt, each.body) for each in batch.frames] == [(f"r-{n}", b"x" * n) for n in range(5)]
    assert [each.headers.get("order") for each in batch.frames] == [None, "1", None, "3", None]


def test_a_lone_send_is_a_batch_of_one():
    assert [len(each.frames) for each in feed(send(1, "a"), send(2, "b"))] == [1, 1]


def test_a_batch_ends_with_the_last_whole_frame_and_goes_on_with_the_next_read():
    data = send(1, "one") + send(2, "two") + send(3, "three")
    for cut in range(len(data)):
        assert [each.body for each in sends_in(feed(data[:cut], data[cut:]))] == [b"one", b"two", b"three"]


def test_another_command_ends_a_batch():
    found = feed(send(1, "a") + send(2, "b") + b"DISCONNECT\n\n\0" + send(3, "c"))
    assert [each.command for each in found] == ["SEND", "DISCONNECT", "SEND"]


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_transactions_of_one_read_are_one_batch_with_the_sends_in_them_and_between_them(version):
    begin, commit = b"BEGIN\ntransaction:t\\c1\n\n\0", b"COMMIT\ntransaction:t\\c1\nreceipt:r\n\n\0\n"
    inside = send(1, "a", "transaction:t\\c1\n")
    abort = b"\r\nABORT\r\ntransaction:u\r\nx:y\r\n\r\n\0"
    [batch] = feed(begin + inside + commit + send(2, "b") + begin + abort, version=version)
    assert batch.command == "BEGIN"
    assert [each.command for each in batch.frames] == ["BEGIN", "SEND", "COMMIT", "SEND", "BEGIN", "ABORT"]
    name = "t\\c1" if version == "1.0" else "t:1"
    assert batch.frames[2].headers == {"transaction": name, "receipt": "r"}
    assert batch.frames[5].headers == {"transaction": "u", "x": "y"}


def test_escapes_are_undone():
    [first, second] = sends_in(
        feed(b"SEND\ndestination:a\nreceipt:ID\\c1\n\n\0SEND\ndestination:a\nreceipt:\\\\2\n\n\0")
    )
    assert (first.receipt, second.receipt) == ("ID:1", "\\2")


def test_a_body_may_hold_nuls_where_its_length_is_told_and_what_looks_like_a_frame():
    body = "a\0b" + send(9, "no").decode()
    assert [each.body for each in sends_in(feed(send(1, body) + send(2, "plain")))] == [body.encode(), b"plain"]


#: Why, and what is not read with others at once.
NOT_PLAIN = [
    ("a repeated header", b"SEND\ndestination:a\nreceipt:1\nreceipt:2\n\n\0"),
    ("carriage returns", b"SEND\r\ndestination:a\r\n\r\n\0"),
    ("a line without a colon", b"SEND\ndestination:a\nreceipt\n\n\0"),
    ("a name with an escape", b"SEND\ndestination:a\nx\\cy:1\n\n\0"),
    ("a length that is not plain", b"SEND\ndestination:a\ncontent-length: 1\n\nx\0"),
    ("a name that is JMS's", b"SEND\ndestination:a\nJMSPriority:1\n\n\0"),
    ("a longer head", b"SEND\nx:" + b"x" * 10_236 + b"\n\n\0"),
]


@pytest.mark.parametrize("data", [data for _, data in NOT_PLAIN], ids=[name for name, _ in NOT_PLAIN])
def test_what_is_less_plain_is_read_by_itself_within_the_batch(data):
    [batch] = feed(send(1, "a") + data + data + send(2, "b"))
    assert [type(each) for each in batch.frames] == [SendFrame, Frame, Frame, SendFrame]


@pytest.mark.parametrize("data", [b"NACK\nid:1-1\ntransaction:t\n\n\0", b"ACK\nid:\xc3\xa4\n\n\0"])
def test_acks_that_are_less_plain_come_frame_by_frame(data):
    assert [type(each) for each in feed(data + data)] == [Frame, Frame]


def test_1_0_trims_values_so_nothing_is_plain():
    batch, ack = feed(send(1, "x") + b"ACK\nid:1-1\n\n\0", version="1.0")
    assert [type(each) for each in (*batch.frames, ack)] == [Frame, Frame]


def test_1_1_has_no_escape_for_the_carriage_return_so_a_head_with_it_is_not_plain():
    data = b"SEND\ndestination:a\nx:1\\r2\n\n\0"
    assert [type(each) for each in sends_in(feed(data, version="1.1") + feed(data))] == [Frame, SendFrame]


def test_plain_acks_are_one_batch_whatever_line_ends_are_between_them():
    assert feed(b"ACK\nid:1-1\n\n\0ACK\nid:1-2\n\n\0\n\r\nACK\nid:2-1\n\n\0") == [AckFrameBatch(["1-1", "1-2", "2-1"])]


def test_acks_with_receipts_are_one_batch_with_those_without():
    data = b"ACK\nid:1-1\n\n\0ACK\nreceipt:a\nid:1-2\n\n\0ACK\nid:2-1\n\n\0"
    assert feed(data) == [AckFrameBatch(["1-1", "1-2", "2-1"], [None] * 3, [None, "a", None])]


def test_acks_of_1_1_are_one_batch_up_to_the_first_that_names_no_subscription():
    data = b"ACK\nmessage-id:ID\\c%d\nsubscription:%s\n\n\0"
    acks, *rest = feed(data % (1, b"a") + data % (2, b"b") + b"ACK\nmessage-id:3\n\n\0", version="1.1")
    assert acks == AckFrameBatch(["ID:1", "ID:2"], ["a", "b"], [None, None])
    assert rest == [Frame("ACK", {"message-id": "3"})]


def test_acks_and_nacks_are_one_batch_and_acks_of_a_transaction_another():
    data = b"NACK\nid:1-1\n\n\0ACK\nid:1-ACK\n\n\0NACK\nid:2-NACK\n\n\0"
    assert feed(data) == [AckFrameBatch(["1-1", "1-ACK", "2-NACK"], rejects=[True, False, True])]
    inside = b"ACK\nid:%d\ntransaction:%s\n\n\0"
    found = feed(data + inside % (3, b"t") + inside % (4, b"t") + inside % (5, b"u") + b"NACK\nid:6\n\n\0")
    assert [(each.command, each.ids, each.transaction) for each in found] == [
        ("NACK", ["1-1", "1-ACK", "2-NACK"], None),
        ("ACK", ["3", "4"], "t"),
        ("ACK", ["5"], "u"),
        ("NACK", ["6"], None),
    ]


@pytest.mark.parametrize("header", [b"x:y", b"id:1"])
def test_an_ack_that_is_less_plain_is_read_by_itself(header):
    acks = feed(b"ACK\nid:1-1\n\n\0ACK\nid:1-2\n" + header + b"\n\n\0")
    assert acks[0].ids[0] == "1-1"
    assert [type(each) for each in acks[1:]] == ([] if header == b"id:1" else [Frame])


def test_a_body_past_the_limit_is_refused_and_what_came_before_it_is_given():
    parser = FrameParser(max_body=10)
    parser.version = "1.2"
    found = parser.feed(send(1, "x" * 10) + send(2, "x" * 11))
    assert [each.body for each in next(found).frames] == [b"x" * 10]
    with pytest.raises(Exception, match="exceeds the limit of 10 bytes"):
        next(found)


#: A message of an order system: what is in each is its own.
ORDER = st.fixed_dictionaries(
    {"destination": st.sampled_from(["/queue/a", "/queue/b"])},
    optional={
        "receipt": st.integers(0, 9).map(str),
        "persistent": st.just("true"),
        "correlation-id": st.uuids().map(str),
        "order": st.integers(0, 10_000).map(str),
        "customer": st.text("abcäö \\:", max_size=9),
        "expires": st.integers(0, 10_000).map(str),
    },
)


def cut(data, places):
    edges = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(ORDER, st.randoms(), st.binary(max_size=40), st.booleans()), min_size=1, max_size=8),
    st.lists(st.integers(0, 10_000), max_size=5),
)
def test_sends_cut_anywhere_say_what_the_plain_reader_says(orders, places):
    data = b""
    for headers, random, body, counted in orders:
        lines = [*headers.items(), *([("content-length", len(body))] if counted else [])]
        random.shuffle(lines)
        text = "".join(f"{name}:{str(value).replace(chr(92), chr(92) * 2)}\n" for name, value in lines)
        data += f"SEND\n{text}\n".encode() + (body if counted else body.replace(b"\0", b"")) + b"\0\n"
    found = sends_in(feed(*cut(data, places)))
    with reading(plainly):
        expected = sends_in(feed(data))
    assert [(each.headers, each.body) for each in found] == [(each.headers, each.body) for each in expected]


# -- the ways to read a head

needs_compiler = pytest.mark.skipif(
    send_reader.CompiledSendReader is None, reason="compiled_sends.pyx is not compiled: there is no C compiler"
)


def plainly(patch):
    """Frame by frame, whatever a head says."""
    patch.setattr(frames.SendReader, "read", lambda self, buffer, start, *_: start)


def compiled(patch):
    """By the compiled reader, and by lines what that leaves."""
    patch.setattr(send_shapes.ShapeCache, "sample", lambda self, lines: None)


def in_python(patch):
    """As without a C compiler."""
    patch.setattr(send_reader, "CompiledSendReader", None)


def by_shapes(patch):
    """Every head by a shape that can have one."""
    in_python(patch)
    patch.setattr(send_reader, "SAMPLED_ONE_IN", 1)
    patch.setattr(send_shapes, "SAMPLES_TO_COMPILE", 1)


def by_lines(patch):
    """No head by a shape."""
    in_python(patch)
    patch.setattr(send_shapes.ShapeCache, "sample", lambda self, lines: None)


@contextmanager
def reading(way):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(send_reader, "SHAPES", send_shapes.ShapeCache())
        way(patch)
        yield


def described(send):
    """What is asked, with the properties in some order; of two reasons to refuse it either may be told."""
    if isinstance(send, RefusedSend):
        return "refused", send.receipt
    return replace(send, properties=sorted(send.properties.split("\n")))


def outcome(data, version, way):
    """The commands that come of these frames, and the error that ended them, if any."""
    session, parser, found = StompSession(), FrameParser(max_body=50), []
    session.receive(Frame("CONNECT", {"accept-version": version}))
    parser.version = version
    with reading(way):
        try:
            for batch in parser.feed(data * 2):  # the second time there may be shapes
                if isinstance(batch, Frame):  # a head may end in the middle, and what follows be another frame
                    found.append(session.receive(batch))
                else:
                    found += map(described, session.receive_batch(batch).requests)
        except ProtocolError as error:
            found.append(str(error))
    return found


NAME = st.sampled_from(
    [*DECIDING, *VARYING, "receipt", "content-length", "message-id", "JMSPriority", "transformation", "order", "größe",
     "customer", "x\\cy", ""]
)  # fmt: skip
VALUE = st.sampled_from(
    ["", "1", "-7", "text", "true", "/queue/a", "a:b", "a\\cb", "\\\\", "\\r", "\r", "ö", "\0", "x" * 30]
)
LINE = st.tuples(NAME, st.sampled_from([":", ":", ":", ":", ":", ":", ""]), VALUE).map("".join)
HEAD = st.lists(LINE, max_size=7).map("\n".join)


@example([("\ndestination:\0\ndestination:", b"")], "1.1")
@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.tuples(HEAD, st.sampled_from([b"", b"x", b"y" * 51, b"\xff"])), min_size=1, max_size=3),
    st.sampled_from(["1.1", "1.2"]),
)
def test_a_head_says_the_same_however_it_is_read(frames_sent, version):
    data = b"".join(f"SEND\ndestination:/queue/a\n{head}\n\n".encode() + body + b"\0" for head, body in frames_sent)
    expected = outcome(data, version, plainly)
    assert outcome(data, version, by_lines) == expected
    assert outcome(data, version, by_shapes) == expected
    assert outcome(data, version, compiled) == expected


@needs_compiler
@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.one_of(st.binary(max_size=60), st.sampled_from([send(1, "abc"), send(2, "x", "größe:1\n")])), max_size=6
    ),
    st.lists(st.integers(0, 10_000), max_size=4),
)
def test_the_compiled_reader_and_python_find_the_same_in_any_bytes(pieces, places):
    reads = cut(b"".join(pieces), places)

    def found(way):
        parser, batches = FrameParser(max_body=50), []
        parser.version = "1.2"
        with reading(way):
            parser._sends = send_reader.SendReader()
            try:
                for read in reads:
                    batches += parser.feed(read)
            except ProtocolError as error:
                batches.append(str(error))
        return batches

    assert found(compiled) == found(in_python)


def head_of(size):
    """Header lines of so many bytes, and their number."""
    return "".join(f"name-{number:04}:{'x' * 90}\n" for number in range(size // 101)) + f"y:{'y' * (size % 101)}\n"


@needs_compiler
@pytest.mark.parametrize("extra", [head_of(size) for size in (4_000, 5_000, 10_100, 10_200, 10_300)])
def test_heads_with_many_properties_or_many_bytes_are_read_alike(extra):
    data = send(1, "a", extra) + send(2, "b")
    assert outcome(data, "1.2", compiled) == outcome(data, "1.2", plainly)


# -- the work, counted in calls


def count_calls(function, calls):
    def counted(*args):
        calls.append(args)
        return function(*args)

    return counted


@contextmanager
def counting(way):
    """What reading heads in Python takes: passes over lines, looks at names, expressions, frames by themselves."""
    with reading(way), pytest.MonkeyPatch.context() as patch:
        work = {"lines": [], "names": [], "compiled": [], "alone": []}
        patch.setattr(send_reader, "read_send_head", count_calls(send_reader.read_send_head, work["lines"]))
        cache = send_shapes.ShapeCache
        patch.setattr(cache, "sample", count_calls(cache.sample, work["names"]))
        patch.setattr(send_shapes, "SendShape", count_calls(send_shapes.SendShape, work["compiled"]))
        patch.setattr(FrameParser, "_frame_at", count_calls(FrameParser._frame_at, work["alone"]))
        yield work


NAMES = [f"name-{number}" for number in range(6)]
#: The header lines of message `number`, varied as applications vary them.
VARIED = {
    "alike": lambda number: NAMES,
    "in another order": lambda number: sorted(NAMES, key=lambda name: crc32(f"{name} {number}".encode())),
    "one more in every third": lambda number: [*NAMES, *["more"] * (number % 3 == 0)],
    "one fewer, another in each": lambda number: [name for at, name in enumerate(NAMES) if at != number % 6],
    "a name that is new in each": lambda number: [*NAMES, f"new-{number}"],
}


COUNT = 1_000


def varied_reads(variation):
    """Messages that are varied so, in reads that end anywhere in a frame."""
    messages = [
        send(number, "x" * (number % 50), "".join(f"{name}:{number}\n" for name in VARIED[variation](number)))
        for number in range(COUNT)
    ]
    return cut(b"".join(messages), range(1_111, 10**6, 1_111))


@pytest.mark.parametrize("variation", VARIED)
def test_a_head_is_looked_at_once_whatever_differs_from_message_to_message(variation):
    reads = varied_reads(variation)
    with counting(in_python) as work:
        found = sends_in(feed(*reads))
    assert [each.headers["name-5"] for each in found if "name-5" in each.headers]
    assert len(found) == COUNT
    assert len(work["lines"]) <= COUNT + len(reads)  # and once more where a read ends in a frame
    assert len(work["names"]) <= len(work["lines"]) // send_shapes.SAMPLED_ONE_IN
    assert len(work["compiled"]) <= len(work["names"]) // send_shapes.SAMPLES_TO_COMPILE
    assert len(work["alone"]) <= len(reads)  # what is left where a read ends


@needs_compiler
@pytest.mark.parametrize("variation", VARIED)
def test_the_compiled_reader_leaves_only_the_ends_of_reads_to_python(variation):
    reads = varied_reads(variation)
    with counting(compiled) as work:
        found = sends_in(feed(*reads))
    assert len(found) == COUNT
    assert len(work["lines"]) <= len(reads)
    assert len(work["alone"]) <= len(reads)
