"""Test the session: frames in, commands out; deliveries in, bytes out, with tables for the versions."""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerapp.errors import AccessDenied, BrokerError, ProtocolError, RequestRefused
from brokerapp.model.commands import (
    AbortCommand,
    AckBatchCommand,
    BeginCommand,
    CommitCommand,
    ConnectCommand,
    DisconnectCommand,
    NackCommand,
    RefusedSend,
    SendBatchCommand,
    SendCommand,
    SubscribeCommand,
    UnsubscribeCommand,
)
from brokerapp.model.transport_connector import HEART_BEAT_FLOOR_MS, ConnectionLimits
from brokerapp.stomp.frame_batches import SendFrameBatch
from brokerapp.stomp.frames import Frame, FrameParser, encode
from brokerapp.stomp.session import StompSession

VERSIONS = ("1.0", "1.1", "1.2")


def connected(version="1.2"):
    session = StompSession()
    session.receive(Frame("CONNECT", {"accept-version": version}))
    return session


@pytest.fixture(params=VERSIONS)
def session(request):
    return connected(request.param)


def send_in(session, frame):
    """The SEND in a frame."""
    [send] = session.receive(frame).requests
    return send


def read(data, version):
    """The one frame in these bytes."""
    parser = FrameParser()
    parser.version = version
    [frame] = parser.feed(data)
    return frame


# -- connecting


@pytest.mark.parametrize("command", ["CONNECT", "STOMP"])
@pytest.mark.parametrize(
    ("offered", "agreed"),
    [
        (None, "1.0"),
        ("1.0", "1.0"),
        ("1.1", "1.1"),
        ("1.2", "1.2"),
        ("1.0,1.1,1.2", "1.2"),
        ("1.0, 1.1", "1.1"),
        ("9.9,1.1", "1.1"),
        ("", None),
        ("2.0", None),
        ("1", None),
    ],
)
def test_versions_are_negotiated(command, offered, agreed):
    session = StompSession()
    frame = Frame(command, {} if offered is None else {"accept-version": offered})
    if agreed is None:
        with pytest.raises(ProtocolError, match=r"no common version: .* offered, 1\.2,1\.1,1\.0 supported"):
            session.receive(frame)
        return
    connect = session.receive(frame)
    assert isinstance(connect, ConnectCommand)
    assert session.version == connect.headers["version"] == agreed


def test_connect_carries_who_the_client_is():
    headers = {"login": "me", "passcode": "secret", "client-id": "c", "request-id": "7", "accept-version": "1.2"}
    connect = StompSession().receive(Frame("CONNECT", headers))
    assert (connect.login, connect.passcode, connect.client_id) == ("me", "secret", "c")
    assert connect.headers["response-id"] == connect.headers["receipt-id"] == "7"


def test_connect_may_ask_for_a_receipt_which_the_answer_is():
    connect = StompSession().receive(Frame("CONNECT", {"receipt": "7", "accept-version": "1.2"}))
    assert connect.headers["response-id"] == connect.headers["receipt-id"] == "7"


@pytest.mark.parametrize(
    ("asked", "sends", "expects"),
    [
        (None, 0, 0),
        ("0,0", 0, 0),
        ("500,700", 700, 500),
        ("0,700", 700, 0),
        ("500,0", 0, 500),
        (" 500 , 700 ", 700, 500),
        ("1,2", HEART_BEAT_FLOOR_MS, HEART_BEAT_FLOOR_MS),
        ("999999999,1000", 1000, 999999999),
    ],
)
def test_heart_beats_are_those_asked_for_the_other_way_round(asked, sends, expects):
    session = StompSession()
    headers = {"accept-version": "1.1"} | ({} if asked is None else {"heart-beat": asked})
    connect = session.receive(Frame("CONNECT", headers))
    assert session.heart_beat == (sends, expects)
    assert connect.headers["heart-beat"] == f"{sends},{expects}"


def test_a_client_that_gets_1_0_is_not_held_to_heart_beats_it_offered_before_it_knew():
    """1.0 has none, and real clients that offer several versions then send none."""
    session = StompSession()
    session.receive(Frame("CONNECT", {"accept-version": "1.0", "heart-beat": "500,700"}))
    assert session.heart_beat == (700, 0)


def test_limits_of_the_connector_bind_heart_beats():
    limits = ConnectionLimits(default_heart_beat="300,400", heart_beat_floor_ms=350, heart_beat_ceiling_ms=900)
    for asked, agreed in ((None, (400, 350)), ("10,10", (350, 350)), ("5000,5000", (900, 5000)), ("0,0", (0, 0))):
        session = StompSession(limits=limits)
        session.receive(Frame("CONNECT", {"accept-version": "1.2"} | ({} if asked is None else {"heart-beat": asked})))
        assert session.heart_beat == agreed


@pytest.mark.parametrize(
    "asked", ["", "0", "0,0,0", "a,b", "-1,0", "1.5,0", "1e3,0", "1000000000,0", "0," + "9" * 5000]
)
def test_heart_beats_that_make_no_sense_are_refused(asked):
    with pytest.raises(ProtocolError, match="heart-beat"):
        StompSession().receive(Frame("CONNECT", {"heart-beat": asked}))


#: State, command, what the error says.
OUT_OF_PLACE = [
    ("new", "SEND", "the first frame must be CONNECT or STOMP, not 'SEND'"),
    ("new", "DISCONNECT", "the first frame must be"),
    ("new", "", "the first frame must be"),
    ("connected", "CONNECT", "CONNECT on a connection that is connected already"),
    ("connected", "STOMP", "STOMP on a connection that is connected already"),
    ("connected", "MESSAGE", "'MESSAGE' is not a command of a client"),
    ("connected", "RECEIPT", "is not a command of a client"),
    ("connected", "send", "'send' is not a command of a client"),
    ("closed", "SEND", "is not a command of a client"),
]


@pytest.mark.parametrize(("state", "command", "says"), OUT_OF_PLACE)
def test_what_comes_in_the_wrong_place_ends_the_connection(state, command, says):
    session = StompSession() if state == "new" else connected()
    if state == "closed":
        session.receive(Frame("DISCONNECT"))
    with pytest.raises(ProtocolError, match=says):
        session.receive(Frame(command))


# -- what clients ask


def test_send_says_what_to_do_with_the_message_and_keeps_the_rest_as_its_properties(session):
    headers = {
        "destination": "/queue/a", "receipt": "r", "transaction": "t", "persistent": "true", "priority": "7",
        "expires": "123", "timestamp": "99", "content-type": "text/plain", "colour": "a:b", "reply-to": "/queue/b",
    }  # fmt: skip
    send = send_in(session, Frame("SEND", headers, b"body"))
    assert send == SendCommand(
        "/queue/a", "content-type:text/plain\ncolour:a\\cb\nreply-to:/queue/b\n", b"body", True, 7, 123, 99, "t", "r"
    )


@pytest.mark.scenario("ST-08", "ST-34")
def test_send_has_the_defaults_of_activemq(session):
    assert send_in(session, Frame("SEND", {"destination": "a"})) == SendCommand(
        "a", "", b"", False, 4, 0, None, None, None
    )


#: Names that mean something, and values that are odd for one of them or another.
SEND_HEADERS = st.dictionaries(
    st.one_of(
        st.sampled_from(
            ["receipt", "persistent", "priority", "expires", "timestamp", "transaction", "reply-to", "amq-msg-type",
             "JMSCorrelationID", "JMSPriority", "correlation-id", "message-id", "JMSXUserID", "transformation",
             "destination-type", "AMQ_SCHEDULED_DELAY"]
        ),
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8),
    ),
    st.one_of(
        st.sampled_from(["true", "7", "x", "text", "jms-map-json", "/temp-queue/q", "/queue/b", "ANYCAST"]),
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8),
    ),
    max_size=6,
)  # fmt: skip


def same_but_for_order(send):
    """A send with its properties in some order: that of frames says nothing."""
    return replace(send, properties=sorted(send.properties.split("\n")))


def described(sends):
    """What is asked, and which are refused: of two reasons either may be told."""
    return [("refused", each.receipt) if isinstance(each, RefusedSend) else same_but_for_order(each) for each in sends]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(SEND_HEADERS, st.booleans(), st.binary(max_size=9)), min_size=1, max_size=5),
    st.sampled_from(["1.1", "1.2"]),
    st.sampled_from(["", "JMSXUserID:u\n"]),
)
def test_sends_read_in_a_batch_say_what_they_say_as_frames_by_themselves(contents, version, user):
    frames = []
    for headers, has_destination, body in contents:
        text = {name.replace("\r", ""): value.replace("\r", "") for name, value in headers.items()}
        text = {name: value for name, value in text.items() if name and name != "content-length"}
        frames.append(Frame("SEND", {**text, **({"destination": "/queue/a"} if has_destination else {}),
                                     "content-length": str(len(body))}, body))  # fmt: skip
    session, plain = connected(version), connected(version)
    session.user_headers = plain.user_headers = user
    parser = FrameParser()
    parser.version = version
    data = b"".join(encode("SEND", each.headers, each.body, version=version) for each in frames)
    expected = [described(plain.receive_batch(SendFrameBatch([each])).requests)[0] for each in frames]
    for _ in range(2):  # what is remembered says the same
        [batch] = parser.feed(data)
        assert described(session.receive_batch(batch).requests) == expected


def test_a_send_that_is_refused_does_not_stop_those_around_it():
    parser = FrameParser()
    parser.version = "1.2"
    heads = ["destination:/queue/a", "destination:/queue/a\nexpires:never\nreceipt:r", "x:1", "destination:/queue/b"]
    [batch] = parser.feed("".join(f"SEND\n{head}\n\n\0" for head in heads).encode())
    first, late, nowhere, last = connected().receive_batch(batch).requests
    assert (first.destination, last.destination) == ("/queue/a", "/queue/b")
    assert (late.receipt, str(late.error)) == ("r", "expires:never is not a whole number")
    assert (nowhere.receipt, str(nowhere.error)) == (None, "SEND without a destination header")


def test_what_decides_about_a_send_is_looked_at_once_for_all_that_say_the_same(monkeypatch):
    looked = []
    real = StompSession._send
    monkeypatch.setattr(StompSession, "_send", lambda *args: (looked.append(args), real(*args))[1])
    parser, session = FrameParser(), connected()
    parser.version = "1.2"
    for number in range(100):
        head = f"destination:/queue/{number % 2}\norder:{number}\nreceipt:{number}\nexpires:{number}"
        [batch] = parser.feed(f"SEND\n{head}\n\n\0".encode())
        [send] = session.receive_batch(batch).requests
        assert (send.properties, send.receipt, send.expires) == (f"order:{number}\n", str(number), number)
    assert len(looked) == 2


@pytest.mark.parametrize(("text", "priority"), [("0", 0), ("9", 9), ("10", 9), ("-3", 0), (" 5 ", 5)])
def test_priorities_are_kept_within_their_range(text, priority):
    assert send_in(connected(), Frame("SEND", {"destination": "a", "priority": text})).priority == priority


@pytest.mark.parametrize("header", ["priority", "expires", "timestamp", "JMSExpiration"])
@pytest.mark.parametrize("text", [str(2**63), str(-(2**63) - 1), "-" + "9" * 3000, "1" + "0" * 9000, "0" * 41])
def test_numbers_beyond_those_of_java_are_refused_at_the_door(header, text):
    with pytest.raises(RequestRefused, match=r"^(priority|expires|timestamp):-?[0-9]+ is beyond 9223372036854775807$"):
        send_in(connected(), Frame("SEND", {"destination": "a", header: text}))
    assert send_in(connected(), Frame("SEND", {"destination": "a", "expires": str(2**63 - 1)})).expires == 2**63 - 1


@pytest.mark.parametrize(("text", "persistent"), [("true", True), ("false", False), ("TRUE", False), ("1", False)])
@pytest.mark.scenario("ST-34")
def test_only_the_word_true_makes_a_message_persistent(text, persistent):
    assert send_in(connected(), Frame("SEND", {"destination": "a", "persistent": text})).persistent is persistent


@pytest.mark.parametrize(
    ("headers", "counted"),
    [
        ({}, False),
        ({"content-length": "4"}, True),
        ({"amq-msg-type": "bytes"}, True),
        ({"amq-msg-type": "BYTES"}, True),
        ({"amq-msg-type": "Text"}, False),
        ({"content-length": "4", "amq-msg-type": "text"}, True),
        ({"amq-msg-type": "text"}, False),
    ],
)
def test_the_length_is_told_where_the_sender_told_it_and_of_bytes(headers, counted):
    send = send_in(connected(), Frame("SEND", {"destination": "a", **headers}, b"body"))
    assert send.is_bytes is counted


@pytest.mark.parametrize(
    ("name", "value", "field", "expected"),
    [
        ("JMSPriority", "7", "priority", 7),
        ("JMSExpiration", "123", "expires", 123),
        ("JMSTimestamp", "99", "timestamp", 99),
        ("JMSDeliveryMode", "PERSISTENT", "persistent", True),
        ("JMSDeliveryMode", "2", "persistent", True),
        ("JMSDeliveryMode", "NON_PERSISTENT", "persistent", False),
        ("JMSCorrelationID", "c", "properties", "correlation-id:c\n"),
        ("JMSType", "t", "properties", "type:t\n"),
        ("JMSReplyTo", "/queue/r", "properties", "reply-to:/queue/r\n"),
        ("JMSXGroupID", "g", "properties", "JMSXGroupID:g\n"),
    ],
)
def test_jms_names_set_what_they_mean(name, value, field, expected):
    assert getattr(send_in(connected(), Frame("SEND", {"destination": "a", name: value})), field) == expected


@pytest.mark.parametrize(
    "name", ["message-id", "redelivered", "subscription", "ack", "JMSXUserID", "original-destination"]
)
def test_what_the_broker_writes_itself_is_no_property(name):
    assert send_in(connected(), Frame("SEND", {"destination": "a", name: "forged"})).properties == ""


def test_only_stomp_1_0_has_no_browsers(session):
    headers = {"destination": "/queue/a", "id": "1", "browser": "true"}
    if session.version == "1.0":
        with pytest.raises(RequestRefused, match=r"1\.1"):
            session.receive(Frame("SUBSCRIBE", headers))
    else:
        assert session.receive(Frame("SUBSCRIBE", headers)).browser


def test_subscribe_names_what_to_consume_and_how(session):
    headers = {
        "destination": "/queue/a", "id": "1", "ack": "client", "selector": "a = 1", "receipt": "r",
        "activemq.prefetchSize": "7", "activemq.priority": "3",
    }  # fmt: skip
    assert session.receive(Frame("SUBSCRIBE", headers)) == SubscribeCommand(
        "1",
        "/queue/a",
        "client",
        "convert_string_expressions:a = 1",
        False,
        {"prefetchSize": "7", "priority": "3"},
        "r",
    )


@pytest.mark.parametrize(
    ("given", "mode"),
    [(None, "auto"), ("auto", "auto"), ("client", "client"), ("client-individual", "client-individual"), ("x", "auto")],
)
def test_an_unknown_ack_mode_is_auto(given, mode):
    headers = {"destination": "a", "id": "1", **({} if given is None else {"ack": given})}
    assert connected().receive(Frame("SUBSCRIBE", headers)).ack_mode == mode


#: Version, command, headers, the action or what the error says.
BY_VERSION = [
    ("1.0", "SUBSCRIBE", {"destination": "a"}, SubscribeCommand(None, "a", "auto", None, False, {}, None)),
    ("1.1", "SUBSCRIBE", {"destination": "a"}, "SUBSCRIBE without an id header"),
    ("1.2", "SUBSCRIBE", {"destination": "a"}, "SUBSCRIBE without an id header"),
    ("1.0", "UNSUBSCRIBE", {"destination": "a"}, UnsubscribeCommand(None, "a", None, None)),
    ("1.0", "UNSUBSCRIBE", {"id": "1"}, UnsubscribeCommand("1", None, None, None)),
    ("1.0", "UNSUBSCRIBE", {}, "UNSUBSCRIBE without an id header"),
    ("1.1", "UNSUBSCRIBE", {"destination": "a"}, "UNSUBSCRIBE without an id header"),
    ("1.2", "UNSUBSCRIBE", {"id": "1", "receipt": "r"}, UnsubscribeCommand("1", None, None, "r")),
    ("1.2", "UNSUBSCRIBE", {"activemq.subscriptionName": "n"}, UnsubscribeCommand(None, None, "n", None)),
    (
        "1.2",
        "UNSUBSCRIBE",
        {"id": "1", "durable-subscription-name": "a", "activemq.subscriptionName": "b"},
        UnsubscribeCommand("1", None, "a", None),
    ),
    (
        "1.2",
        "SUBSCRIBE",
        {"id": "1", "destination": "/topic/a", "durable-subscriber-name": "n"},
        SubscribeCommand("1", "/topic/a", "auto", None, False, {"subscriptionName": "n"}, None),
    ),
    ("1.0", "ACK", {"message-id": "m"}, AckBatchCommand(["m"], [None], [None])),
    ("1.0", "ACK", {"message-id": "m", "subscription": "s"}, AckBatchCommand(["m"], ["s"], [None])),
    ("1.1", "ACK", {"message-id": "m", "subscription": "s"}, AckBatchCommand(["m"], ["s"], [None])),
    *(("1.1", verb, {"message-id": "m"}, f"{verb} without the header subscription") for verb in ("ACK", "NACK")),
    ("1.2", "ACK", {"id": "7", "transaction": "t", "receipt": "r"}, AckBatchCommand(["7"], [None], ["r"], "t")),
    ("1.0", "ACK", {"id": "7"}, "ACK without the header message-id"),
    ("1.1", "ACK", {"id": "7"}, "ACK without the header message-id"),
    ("1.2", "ACK", {"message-id": "m"}, "ACK without the header id"),
    ("1.0", "NACK", {"message-id": "m"}, "NACK is not a command of STOMP 1.0"),
    ("1.1", "NACK", {"message-id": "m", "subscription": "s"}, NackCommand("m", "s", None, None)),
    ("1.2", "NACK", {"id": "7"}, NackCommand("7", None, None, None)),
    *((version, "BEGIN", {"transaction": "t"}, SendBatchCommand([BeginCommand("t", None)])) for version in VERSIONS),
    *(
        (version, "COMMIT", {"transaction": "t", "receipt": "r"}, SendBatchCommand([CommitCommand("t", "r")]))
        for version in VERSIONS
    ),
    *((version, "ABORT", {"transaction": "t"}, SendBatchCommand([AbortCommand("t", None)])) for version in VERSIONS),
    *((version, "BEGIN", {}, "BEGIN without a transaction header") for version in VERSIONS),
    *((version, "DISCONNECT", {"receipt": "r"}, DisconnectCommand("r")) for version in VERSIONS),
    *((version, "SEND", {}, "SEND without a destination header") for version in VERSIONS),
    *((version, "SUBSCRIBE", {"id": "1"}, "SUBSCRIBE without a destination header") for version in VERSIONS),
]


@pytest.mark.parametrize(("version", "command", "headers", "expected"), BY_VERSION)
def test_what_a_frame_asks_depends_on_the_version(version, command, headers, expected):
    session, frame = connected(version), Frame(command, headers)
    if isinstance(expected, str):
        with pytest.raises(RequestRefused, match=expected):
            session.receive(frame)
    else:
        assert session.receive(frame) == expected


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(VERSIONS),
    st.sampled_from(["SEND", "SUBSCRIBE", "UNSUBSCRIBE", "ACK", "NACK", "BEGIN", "CONNECT", "DISCONNECT", "x"]),
    st.dictionaries(
        st.sampled_from(
            ["destination", "id", "message-id", "transaction", "priority", "expires", "timestamp", "heart-beat",
             "accept-version", "content-length", "amq-msg-type", "JMSDeliveryMode", "ack", "x"]
        ),
        st.one_of(st.text(max_size=8), st.sampled_from(["9" * 5000, "-1", "1e9", "true", "bytes", "1.2"])),
    ),
)  # fmt: skip
def test_no_frame_makes_a_session_fail_in_any_other_way_than_it_says(version, command, headers):
    for session in (StompSession(), connected(version)):
        with suppress(ProtocolError, RequestRefused):
            session.receive(Frame(command, headers))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("SUB", SubscribeCommand),
        ("SUBX", SubscribeCommand),
        ("SENDER", SendBatchCommand),
        ("ACKNOWLEDGE", AckBatchCommand),
        ("BEGINNING", SendBatchCommand),
        ("UNSUB", UnsubscribeCommand),
        ("DISCONNECTED", DisconnectCommand),
    ],
)
def test_a_command_is_known_by_its_beginning_as_in_activemq(written, meant):
    headers = {"destination": "/queue/a", "id": "1", "transaction": "t"}
    assert isinstance(connected().receive(Frame(written, headers)), meant)


@pytest.mark.parametrize("command", ["SED", "send", "SU", "UNSU", "", "MESSAGE", "RECEIPT", "ERROR", "CONNECTED"])
def test_a_command_of_another_beginning_is_none(command):
    with pytest.raises(ProtocolError):
        connected().receive(Frame(command, {"destination": "/queue/a", "id": "1"}))


def test_each_message_carries_the_stamp_of_its_sender():
    session = connected()
    session.user_headers = "JMSXUserID:ada\n"
    send = send_in(session, Frame("SEND", {"destination": "a", "x": "1", "JMSXUserID": "root"}))
    assert send.properties.splitlines() == ["JMSXUserID:ada", "x:1"]


def test_text_announced_as_json_that_is_none_says_so():
    headers = {"destination": "a", "transformation": "jms-map-json"}
    wrong = send_in(connected(), Frame("SEND", headers, b"<map/>"))
    assert "transformation-error:jms-map-json\\c the body cannot be read" in wrong.properties
    assert "transformation-error" not in send_in(connected(), Frame("SEND", headers, b'{"map":{}}')).properties


# -- what clients are told


@pytest.mark.scenario("S1-02")
def test_connected_is_never_escaped(session):
    data = session.connected({"version": session.version, "heart-beat": "0,0"}, "a:b\\c", "b")
    assert b"session:a:b\\c\n" in data


def test_receipts_and_errors_name_the_receipt_asked_for(session):
    assert read(session.server_frames.receipts(["r:1"]), session.version) == Frame("RECEIPT", {"receipt-id": "r:1"})
    error = read(session.server_frames.error(AccessDenied("you may not: never"), "r:1"), session.version)
    assert error.command == "ERROR"
    assert error.headers == {
        "message": "you may not: never", "code": "access-denied", "content-type": "text/plain", "receipt-id": "r:1"
    }  # fmt: skip
    assert error.body == b"you may not: never"
    assert "receipt-id" not in read(session.server_frames.error(BrokerError("x")), session.version).headers


@pytest.mark.parametrize(
    ("version", "subscription", "expected"),
    [
        ("1.0", None, b"MESSAGE\ndestination:/queue/a:b\n"),
        ("1.0", "s", b"MESSAGE\ndestination:/queue/a:b\nsubscription:s\n"),
        ("1.1", "s:1", b"MESSAGE\ndestination:/queue/a\\cb\nsubscription:s\\c1\n"),
        ("1.2", "s:1", b"MESSAGE\ndestination:/queue/a\\cb\nsubscription:s\\c1\n"),
    ],
)
def test_a_message_names_its_destination_and_subscription(version, subscription, expected):
    assert connected(version).server_frames.message_prefix("/queue/a:b", subscription) == expected


STORED_HEAD = b"message-id:ID\\ca\\c1\nx:a\\cb\\nc\\\\d\\re\n"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.0", b"message-id:ID:a:1\nx:a:b c\\d\re\n"),
        ("1.1", b"message-id:ID\\ca\\c1\nx:a\\cb\\nc\\\\d\re\n"),
        ("1.2", STORED_HEAD),
    ],
)
def test_stored_headers_are_written_as_the_version_reads_them(version, expected):
    assert connected(version).server_frames.translate_head(STORED_HEAD) == expected


def test_no_header_value_breaks_a_line_in_1_0():
    """It has no escapes: a queue that a 1.2 client named so would forge headers for its consumers."""
    session = connected("1.0")
    assert (
        session.server_frames.message_prefix("/queue/a\nb:c", "s\r\n")
        == b"MESSAGE\ndestination:/queue/a b:c\nsubscription:s\r \n"
    )
    assert session.server_frames.header("original-destination", "a\nb") == b"original-destination:a b\n"
    evil = RequestRefused("what: a\nreceipt-id:forged\r\n\nb")
    frame = read(session.server_frames.error(evil, "r"), "1.0")
    assert frame.headers["receipt-id"] == "r"


def test_what_a_bridge_passes_on_says_who_sent_it_where_it_came_from_and_clients_say_nothing_of_that():
    sent = {"destination": "/queue/q", "JMSXUserID": "ann:1"}
    for bridge, user in ({"sluice-broker": "far"}, r"ann\c1"), ({}, "me"):
        session = StompSession()
        session.receive(Frame("CONNECT", {"accept-version": "1.2", **bridge}))
        session.user_headers = "JMSXUserID:me\n"
        assert send_in(session, Frame("SEND", dict(sent))).properties == f"JMSXUserID:{user}\n"
