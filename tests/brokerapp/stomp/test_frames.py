"""Test the codec with each case as a whole, byte by byte, and split anywhere with the next frame behind it."""

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from brokerapp.errors import ProtocolError
from brokerapp.stomp import frames, header_parser
from brokerapp.stomp.frame_batches import AckFrameBatch
from brokerapp.stomp.frames import Frame, FrameParser, encode

NEXT = b"BEGIN\ntransaction:next\n\n\0"
NEXT_FRAME = Frame("BEGIN", {"transaction": "next"})

F = Frame


def counted(length, body=b"", command="SEND"):
    """A frame with this content-length."""
    return Frame(command, {"content-length": str(length)}, body)


#: Name, version, bytes, frame.
CASES = [
    ("no headers, no body", "1.2", b"DISCONNECT\n\n\0", F("DISCONNECT")),
    ("a header", "1.2", b"BEGIN\ntransaction:t\n\n\0", F("BEGIN", {"transaction": "t"})),
    ("a body", "1.2", b"SEND\na:b\n\nhello\0", F("SEND", {"a": "b"}, b"hello")),
    ("a body of some lines", "1.2", b"SEND\na:b\n\n\nx\n\ny\n\0", F("SEND", {"a": "b"}, b"\nx\n\ny\n")),
    ("NULs in a counted body", "1.2", b"SEND\ncontent-length:5\n\na\0b\0c\0", counted(5, b"a\0b\0c")),
    ("an empty counted body", "1.2", b"SEND\ncontent-length:0\n\n\0", counted(0)),
    ("a counted body without headers else", "1.1", b"SEND\ncontent-length: 2\n\nab\0", counted(" 2", b"ab")),
    ("a length of minus nothing", "1.1", b"SEND\ncontent-length:-0\n\n\0", counted("-0", b"")),
    ("a length with a sign", "1.1", b"SEND\ncontent-length:+2\n\nab\0", counted("+2", b"ab")),
    ("a nonsense content-length without a body", "1.2", b"ACK\ncontent-length:99\n\n\0", counted(99, command="ACK")),
    ("a line without a colon", "1.2", b"SEND\na=1\nb:2\n\nc\0", F("SEND", {"b": "2"}, b"c", ("a=1",))),
    ("lines without a colon", "1.0", b"SEND\na\nb:2\n \n\nc\0", F("SEND", {"b": "2"}, b"c", ("a", " "))),
    ("a NUL before it", "1.2", b"\0BEGIN\na:b\n\n\0", F("BEGIN", {"a": "b"})),
    ("NULs and blanks before it", "1.1", b"\0\n\0 \t\r\nSEND\na:b\n\n\0", F("SEND", {"a": "b"})),
    ("newlines before it", "1.2", b"\n\n\nBEGIN\na:b\n\n\0", F("BEGIN", {"a": "b"})),
    ("carriage returns before it", "1.2", b"\r\n\r\nBEGIN\na:b\n\n\0", F("BEGIN", {"a": "b"})),
    ("carriage returns at the line ends", "1.2", b"SEND\r\na:b\r\n\r\nbody\r\n\0", F("SEND", {"a": "b"}, b"body\r\n")),
    ("carriage returns at the line ends in 1.0", "1.0", b"SEND\r\na:b\r\n\r\nbody\0", F("SEND", {"a": "b"}, b"body")),
    ("carriage return at the empty line only", "1.2", b"SEND\na:b\n\r\nbody\n\n\0", F("SEND", {"a": "b"}, b"body\n\n")),
    ("an empty line in the body after carriage returns", "1.2", b"SEND\r\n\r\nx\n\ny\0", F("SEND", {}, b"x\n\ny")),
    ("colons in the value", "1.2", b"SEND\na:b:c:\n\n\0", F("SEND", {"a": "b:c:"})),
    ("an empty value", "1.2", b"SEND\na:\n\n\0", F("SEND", {"a": ""})),
    ("escapes", "1.2", b"SEND\na\\cb:c\\nd\\\\e\\rf\n\n\0", F("SEND", {"a:b": "c\nd\\e\rf"})),
    ("a backslash that is escaped before an n", "1.2", b"SEND\na:\\\\n\n\n\0", F("SEND", {"a": "\\n"})),
    ("an unknown escape", "1.2", b"SEND\na:\\t\\\n\n\0", F("SEND", {"a": "\\t\\"})),
    ("the escape that 1.1 does not have", "1.1", b"SEND\na:b\\rc\\nd\n\n\0", F("SEND", {"a": "b\\rc\nd"})),
    ("a carriage return in a value", "1.1", b"SEND\na:b\rc\n\n\0", F("SEND", {"a": "b\rc"})),
    ("no escapes in 1.0", "1.0", b"SEND\na:b\\nc\\c\n\n\0", F("SEND", {"a": "b\\nc\\c"})),
    ("no escapes in CONNECT", "1.2", b"CONNECT\na:b\\nc\n\n\0", F("CONNECT", {"a": "b\\nc"})),
    ("spaces are kept", "1.1", b"SEND\n a : b \n\n\0", F("SEND", {" a ": " b "})),
    ("spaces are trimmed in 1.0", "1.0", b"SEND \n a : b \n\n\0", F("SEND", {"a": "b"})),
    ("of a repeated header the first counts", "1.2", b"SEND\na:1\nb:2\na:3\n\n\0", F("SEND", {"b": "2", "a": "1"})),
    ("any script", "1.2", "SEND\nä:☃\U0001f600\n\nö\0".encode(), F("SEND", {"ä": "☃\U0001f600"}, "ö".encode())),
    ("bytes that are no text in the body", "1.2", b"SEND\n\n\xff\xfe\0", F("SEND", {}, b"\xff\xfe")),
]  # fmt: skip
NAMES = [case[0] for case in CASES]
TABLE = pytest.mark.parametrize(("version", "data", "frame"), [case[1:] for case in CASES], ids=NAMES)


def parser(version="1.2", **options):
    made = FrameParser(**options)
    made.version = version
    return made


def one_by_one(found):
    """The frames, those of batches among them as they would be alone."""
    for each in found:
        if isinstance(each, Frame):
            yield each
        elif isinstance(each, AckFrameBatch):
            yield from acks_of(each)
        else:
            yield from map(plain, each.frames)


def acks_of(batch):
    """The ACKs and NACKs of a batch as they are read by themselves, in STOMP 1.2 or 1.1."""
    nothing = [None] * len(batch.ids)
    for id, subscription, receipt, rejects in zip(
        batch.ids, batch.subscriptions or nothing, batch.receipts or nothing, batch.rejects or nothing, strict=True
    ):
        headers = {"id": id} if subscription is None else {"message-id": id, "subscription": subscription}
        if batch.transaction is not None:
            headers["transaction"] = batch.transaction
        yield Frame("NACK" if rejects else "ACK", headers | ({} if receipt is None else {"receipt": receipt}))


def plain(send):
    """A SEND as it is read by itself."""
    if isinstance(send, Frame):
        return send
    return Frame("SEND", send.headers, send.body)


def parse(pieces, version="1.2", **options):
    """The frames that come out, and the error at the end if there is one."""
    made, found = parser(version, **options), []
    try:
        for piece in pieces:
            found += one_by_one(made.feed(piece))
    except ProtocolError as error:
        return found, str(error)
    return found, None


@TABLE
def test_a_frame_comes_out_whole(version, data, frame):
    assert parse([data], version) == ([frame], None)


@TABLE
def test_a_frame_comes_out_byte_by_byte_and_not_before_its_end(version, data, frame):
    made = parser(version)
    for number in range(len(data) - 1):
        assert list(made.feed(data[number : number + 1])) == []
    assert list(one_by_one(made.feed(data[-1:]))) == [frame]


@TABLE
def test_a_frame_comes_out_wherever_it_is_cut_with_the_next_one_behind_it(version, data, frame):
    stream = data + b"\n" + NEXT
    for cut in range(len(stream) + 1):
        assert parse([stream[:cut], stream[cut:]], version) == ([frame, NEXT_FRAME], None)


def test_the_version_may_change_between_frames_of_one_read():
    made = parser("1.0")
    found = []
    for frame in one_by_one(made.feed(b"CONNECT\n a : b \n\n\0SEND\nx: a\\nb\n\n\0")):
        found.append(frame)
        made.version = "1.2"
    assert found == [Frame("CONNECT", {"a": "b"}), Frame("SEND", {"x": " a\nb"})]


#: Name, bytes, what the error says.
BAD = [
    ("no name", b"SEND\n:abc\n\n\0", "no name"),
    ("a NUL instead of the empty line", b"SEND\na:b\0", "NUL inside the headers"),
    ("a NUL in a header", b"SEND\na:b\0c\n\n\0", "NUL inside the headers"),
    ("headers that are no text", b"SEND\na:\xff\n\n\0", "UTF-8"),
    ("a body longer than announced", b"SEND\ncontent-length:2\n\nabc\0", "no NUL after the 2 bytes"),
    ("a negative length", b"SEND\ncontent-length:-1\n\n\0", "not a number of bytes"),
    ("an empty length", b"SEND\ncontent-length:\n\n\0", "not a number of bytes"),
    ("a length in other digits", "SEND\ncontent-length:٣\n\nabc\0".encode(), "not a number of bytes"),
    ("a length of very many digits", b"SEND\ncontent-length:" + b"9" * 5000 + b"\n\n\0", "not a number of bytes"),
    ("a length past the limit", b"SEND\ncontent-length:1001\n\n", "exceeds the limit of 1000 bytes"),
    ("a command line too long", b"S" * 1025 + b"\na:b\n\n\0", "exceeds 1024 bytes"),
    ("a command line that does not end", b"S" * 1025, "exceeds 1024 bytes"),
    ("a header line too long", b"SEND\na:" + b"b" * 10_239 + b"\n\n\0", "exceeds 10240 bytes"),
    ("too many headers", b"SEND\n" + b"a:b\n" * 1001 + b"\n\0", "at most 1000"),
    ("headers that do not end", b"SEND\n" + b"a:b\n" * 70_000, "exceed 262144 bytes"),
    ("an uncounted body past the limit", b"SEND\na:b\n\n" + b"x" * 300_000, "exceeds the limit of 1000 bytes"),
]


@pytest.mark.parametrize(("data", "says"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_what_is_no_frame_is_refused(data, says):
    frames_before, error = parse([NEXT + data], max_body=1000)
    assert frames_before == [NEXT_FRAME]
    assert says in error


@pytest.mark.parametrize(("data", "says"), [case[1:] for case in BAD[:10]], ids=[case[0] for case in BAD[:10]])
def test_what_is_no_frame_is_refused_byte_by_byte_too(data, says):
    found, error = parse([data[n : n + 1] for n in range(len(data))], max_body=1000)
    assert found == []
    assert says in error


#: Name, bytes, what exceeds a frame of 100 bytes.
TOO_LONG = [
    ("a command line", b"S" * 101 + b"\na:b\n\n\0", "the command line exceeds"),
    ("a command line that does not end", b"S" * 101, "the command line exceeds"),
    ("a header", b"SEND\na:" + b"b" * 100 + b"\n\n\0", "the headers exceed"),
    ("headers", b"SEND\n" + b"a:b\n" * 50 + b"\n\0", "the headers exceed"),
    ("headers that do not end", b"SEND\n" + b"a:b\n" * 50, "the headers exceed"),
    ("a body", b"SEND\na:b\n\n" + b"c" * 94 + b"\0", "the body exceeds"),
    ("a counted body", b"SEND\ncontent-length:99\n\n", "content-length:99 exceeds"),
]


@pytest.mark.parametrize(("data", "says"), [case[1:] for case in TOO_LONG], ids=[case[0] for case in TOO_LONG])
def test_what_exceeds_the_length_of_a_frame_is_named(data, says):
    for pieces in ([data], [data[at : at + 1] for at in range(len(data))]):
        found, error = parse(pieces, max_frame=100)
        assert found == []
        assert error.startswith(says)
        assert "a frame of 100 bytes (maxFrameSize)" in error


def test_an_uncounted_body_past_the_limit_is_refused_while_it_comes():
    pieces = [b"SEND\na:b\n\n", *[b"x" * 50_000] * 10]
    assert "exceeds the limit of 1000 bytes" in parse(pieces, max_body=1000)[1]


def test_limits_are_limits_and_not_one_less():
    header = b"a:" + b"b" * 10_238
    data = b"SEND\n" + header + b"\n" + b"".join(b"h%d:x\n" % n for n in range(999)) + b"content-length:1000\n\n"
    found, error = parse([data.replace(b"h998:x\n", b"") + b"x" * 1000 + b"\0"], max_body=1000)
    assert error is None
    assert (len(found[0].headers), len(found[0].body)) == (1000, 1000)


def test_a_large_body_in_small_pieces_is_put_together_once(monkeypatch):
    """Looking at it again with every piece would take time that grows with the square of its size."""
    looks = 0
    real = FrameParser._frame_at

    def counted(self, *args):
        nonlocal looks
        looks += 1
        return real(self, *args)

    monkeypatch.setattr(FrameParser, "_frame_at", counted)
    body = b"x" * 1_000_000
    for head in (b"SEND\ncontent-length:1000000\n\n", b"SEND\n\n"):
        looks = 0
        data = head + body + b"\0"
        pieces = [data[at : at + 1000] for at in range(0, len(data), 1000)]
        assert parse(pieces) == ([Frame("SEND", {"content-length": "1000000"} if b":" in head else {}, body)], None)
        assert looks < 10


# -- properties

#: Bytes that have something to do with frames.
FRAMELIKE = st.lists(
    st.one_of(
        st.sampled_from([b"\0", b"\n", b"\r\n", b"\r", b":", b"\\", b"\n\n", b"a:b\n", b"content-length:3\n"]),
        st.sampled_from([b"SEND", b"CONNECT", NEXT]),
        st.binary(max_size=4),
    ),
    max_size=20,
).map(b"".join)


def cut(data, places):
    """The data in pieces."""
    edges = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


@settings(max_examples=120, deadline=None)
@given(FRAMELIKE, st.lists(st.integers(0, 10_000), max_size=5), st.sampled_from(["1.0", "1.1", "1.2"]))
@example(b"DISCONNECT\0\na:b\n\n\0", [12], "1.2")
def test_any_bytes_in_any_pieces_give_the_same_frames_or_a_protocol_error(data, places, version):
    whole, error = parse([data], version)
    pieces, error_in_pieces = parse(cut(data, places), version)
    assert pieces == whole
    assert (error is None) == (error_in_pieces is None)


@settings(max_examples=80, deadline=None)
@given(FRAMELIKE, st.lists(st.integers(0, 10_000), max_size=5), st.integers(0, 5), st.sampled_from(["1.0", "1.2"]))
def test_reads_that_are_given_together_say_what_they_say_one_by_one(data, places, first, version):
    reads = cut(data, places)
    together, found, error = parser(version), [], None
    try:
        for part in (reads[:first], reads[first:]):
            found += one_by_one(together.feed(*part))
    except ProtocolError as refused:
        error = str(refused)
    one, error_of_one = parse(reads, version)
    assert found == one
    assert (error is None) == (error_of_one is None)


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
NAME = TEXT.filter(bool)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.dictionaries(NAME, TEXT, max_size=5), st.binary(max_size=50)), min_size=1, max_size=4),
    st.lists(st.integers(0, 10_000), max_size=6),
)
@pytest.mark.scenario("SC-14")
def test_what_is_encoded_comes_back_in_any_pieces(contents, places):
    sent = [
        Frame("SEND", {**headers, "content-length": str(len(body))}, body)
        for headers, body in contents
        if "content-length" not in headers
    ]
    data = b"".join(encode(frame.command, frame.headers, frame.body) for frame in sent)
    assert parse(cut(data, places)) == (sent, None)


#: Header text that 1.0 can say: it has no escapes, and blanks at the ends are trimmed.
PLAIN = st.text(st.characters(exclude_characters="\0\n\r:", exclude_categories=["Cs"]), max_size=20).map(str.strip)
#: The same by version: without an escape for it a carriage return at the end of a line is part of the line's end.
SAYABLE = {"1.0": PLAIN, "1.1": TEXT.map(lambda text: text.rstrip("\r")), "1.2": TEXT}


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(["1.0", "1.1", "1.2"]),
    st.data(),
    st.sampled_from(["SEND", "MESSAGE", "ERROR"]),
    st.binary(max_size=80),
    st.lists(st.integers(0, 10_000), max_size=6),
)
def test_what_is_encoded_in_a_version_comes_back_in_it(version, data, command, body, places):
    text = SAYABLE[version]
    headers = data.draw(
        st.dictionaries(text.filter(bool), text, max_size=5).filter(lambda each: "content-length" not in each)
    )
    sent = Frame(command, {**headers, "content-length": str(len(body))}, body)
    encoded = encode(command, sent.headers, body, version=version)
    assert parse(cut(encoded * 2, places), version) == ([sent, sent], None)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 400), st.integers(1, 300), st.booleans(), st.lists(st.integers(0, 10_000), max_size=4))
def test_a_frame_is_refused_exactly_when_it_is_longer_than_it_may_be(length, max_frame, is_counted, places):
    headers = {"destination": "/queue/a"} | ({"content-length": str(length)} if is_counted else {})
    data = encode("SEND", headers, b"x" * length)
    found, error = parse(cut(data, places), max_frame=max_frame)
    head = data[: data.index(b"\n\n")]
    fits = len(head.replace(b"\n", b"")) + length <= max_frame  # line ends do not count
    assert (len(found), error is None) == (int(fits), fits)
    assert fits or "(maxFrameSize)" in error


@pytest.mark.parametrize(
    ("version", "command", "expected"),
    [
        ("1.2", "RECEIPT", b"RECEIPT\na:b\\cc\\n\\\\\n\n\0\n"),
        ("1.1", "RECEIPT", b"RECEIPT\na:b\\cc\\n\\\\\n\n\0\n"),
        ("1.0", "RECEIPT", b"RECEIPT\na:b:c \\\n\n\0\n"),
        ("1.2", "CONNECTED", b"CONNECTED\na:b:c \\\n\n\0\n"),
    ],
)
def test_values_are_escaped_as_the_version_has_it(version, command, expected):
    assert encode(command, {"a": "b:c\n\\"}, version=version) == expected


def test_limits_are_those_of_activemq():
    assert (header_parser.MAX_COMMAND_BYTES, header_parser.MAX_HEADER_LINE_BYTES, header_parser.MAX_HEADERS) == (
        1024,
        10 * 1024,
        1000,
    )
    assert frames.MAX_BODY_BYTES == 100 * 1024 * 1024
