"""StompSession: one client's protocol state. Frames in, actions out; deliveries in, bytes out. No sockets, no clock, no
broker.

    NEW --CONNECT or STOMP--> CONNECTED --DISCONNECT--> CLOSED      a ProtocolError leads to CLOSED from anywhere

What differs between versions stands in tables, not in subclasses.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from brokerapp.errors import ProtocolError, RequestRefused
from brokerapp.model.broker_path import BOUND_QUEUES_HEADER, KEEP_HEADER, PATH_HEADER, REASON_HEADER, parse_path
from brokerapp.model.commands import (
    AbortCommand,
    AckBatchCommand,
    BeginCommand,
    BridgedOrigin,
    ClientCommand,
    CommitCommand,
    ConnectCommand,
    DisconnectCommand,
    NackCommand,
    RefusedSend,
    SendBatchCommand,
    SendCommand,
    SubscribeCommand,
    TransactionCommand,
    UnsubscribeCommand,
)
from brokerapp.model.jms.form import JMS_HEADER, JmsForm, JmsKind
from brokerapp.model.jms.transformations import find_error
from brokerapp.model.message import escape
from brokerapp.model.selector_prefixes import converting
from brokerapp.model.transport_connector import DEFAULT_LIMITS, ConnectionLimits
from brokerapp.stomp.compression import ENCODING_HEADER, decompress
from brokerapp.stomp.frame_batches import AckFrameBatch, SendFrame
from brokerapp.stomp.frames import Frame, FrameBatch
from brokerapp.stomp.naming import NO_OWN_NAMES, SEND_TYPE, DestinationNaming, may_name_own
from brokerapp.stomp.send_headers import (
    apply_jms_names,
    has_content_length,
    jms_lines_of,
    origin_of,
    priority_of,
    properties_of,
    whole_number,
)
from brokerapp.stomp.send_heads import DECIDING, VARYING, Values, named_values
from brokerapp.stomp.server_frames import ServerFrames
from brokerapp.stomp.subscribe_headers import options_of, subscription_name
from brokerapp.version import PRODUCT

#: Best first.
VERSIONS = ("1.2", "1.1", "1.0")
ACK_MODES = frozenset({"auto", "client", "client-individual"})
#: The header of ACK and NACK that names the message.
ACK_HEADER = {"1.0": "message-id", "1.1": "message-id", "1.2": "id"}
#: Longest number in a heart-beat header: eleven days.
HEART_BEAT_DIGITS = 9
#: By which a bridge says whose it is, in CONNECT and CONNECTED.
BRIDGE_HEADER = "sluice-broker"
#: By which a bridge is told in CONNECTED how long a body, and a frame (0: any), may be: anything longer ends it.
LIMITS_HEADER = "sluice-limits"
#: By which a broker of a cluster says what it was told of that, in CONNECT.
CLUSTER_HEADER = "sluice-cluster"
#: By which it says that it takes messages to there, too.
DUPLEX_HEADER = "sluice-duplex"
#: By which it says which of its ways to there this is: while one lasts it has no other connection.
WAY_HEADER = "sluice-way"
#: By which it says that it brings a message of a topic once for each subscriber here (conduitSubscriptions is false).
COPIES_HEADER = "sluice-copies"
MESSAGE_ID, USER_ID = "message-id", "JMSXUserID"


#: Different values of the deciding headers of SEND that one session remembers, and the most characters of one.
MAX_KNOWN_SENDS, MAX_KNOWN_CHARACTERS = 512, 512
NOTHING_VARIES: dict[str, str] = {}


class SessionState(StrEnum):
    """State of a STOMP session."""

    NEW = "new"
    CONNECTED = "connected"
    CLOSED = "closed"


class StompSession:
    """Protocol state of one client."""

    def __init__(self, naming: DestinationNaming = NO_OWN_NAMES, limits: ConnectionLimits = DEFAULT_LIMITS) -> None:
        self._naming = naming
        self._enter(SessionState.NEW)
        self._limits = limits
        self._known_sends: dict[Values, SendCommand] = {}  # by what decides about them
        self._last_varying: tuple[Values, dict[str, str]] = (), {}
        self.server_frames = ServerFrames(VERSIONS[-1])  #: what is said to the client
        self.user_headers = ""  #: header lines that each message the client sends gets
        self.heart_beat = (0, 0)  #: milliseconds: what the server sends, what it expects
        self.bridge: str | None = None  #: the broker whose bridge the client is

    @property
    def version(self) -> str:
        """Return the agreed version; 1.0 until CONNECT."""
        return self.server_frames.version

    def _enter(self, state: SessionState) -> None:
        self.state, self._handlers = state, HANDLERS[state]

    def receive(self, frame: Frame) -> ClientCommand:
        """Return the command in this frame. Raises ProtocolError (ends the session) or RequestRefused (this frame)."""
        handler = self._handlers.get(frame.command)
        if handler is None:
            handler = self._handlers[self._complete_command(frame)]
        return handler(self, frame.headers, frame)

    def _complete_command(self, frame: Frame) -> str:
        """The command that the frame's begins with, as ActiveMQ reads it; raises ProtocolError when there is none."""
        for start, command in BEGINNINGS:
            if frame.command.startswith(start) and command in self._handlers:
                frame.command = command
                return command
        raise ProtocolError(self._unexpected_command(frame.command))

    def receive_batch(self, batch: FrameBatch) -> ClientCommand:
        """Return the command in a batch of frames; one that is refused does not stop the others."""
        if self.state is not SessionState.CONNECTED:
            raise ProtocolError(self._unexpected_command(batch.command))
        if isinstance(batch, AckFrameBatch):
            return AckBatchCommand(batch.ids, batch.subscriptions, batch.receipts, batch.transaction, batch.rejects)
        requests: list[SendCommand | TransactionCommand | RefusedSend] = []
        for frame in batch.frames:
            try:
                if isinstance(frame, SendFrame) and self.bridge is None:
                    requests.append(self._send_plain(frame))
                elif frame.command == "SEND":
                    requests.append(self._send(frame.headers, frame.body))
                else:
                    requests.append(_transaction_command(frame))
            except RequestRefused as error:
                requests.append(RefusedSend(error, frame.receipt))
        return SendBatchCommand(requests)

    def _unexpected_command(self, command: str) -> str:
        if self.state is SessionState.NEW:
            return f"the first frame must be CONNECT or STOMP, not {command[:40]!r}"
        if command in ("CONNECT", "STOMP"):
            return f"{command} on a connection that is connected already"
        return f"{command[:40]!r} is not a command of a client"

    # -- frames of the client

    def _connect(self, headers: dict[str, str], _frame: Frame) -> ClientCommand:
        offered = headers.get("accept-version", "1.0").replace(" ", "").split(",")
        version = next((each for each in VERSIONS if each in offered), None)
        if version is None:
            raise ProtocolError(f"no common version: {','.join(offered)[:80]} offered, {','.join(VERSIONS)} supported")
        self.server_frames = ServerFrames(version)
        wish = headers.get("heart-beat", self._limits.default_heart_beat)
        ours, theirs = _heart_beat(wish, self._limits)
        if version == "1.0" and "heart-beat" in headers:
            theirs = 0  # it asked before it knew the version, and 1.0 knows no heart-beats
        self.heart_beat = ours, theirs
        self._enter(SessionState.CONNECTED)
        answer = {"version": version, "server": PRODUCT, "heart-beat": f"{ours},{theirs}"}
        request = headers.get("request-id", headers.get("receipt"))
        if request is not None:
            answer["response-id"] = answer["receipt-id"] = request
        shares_client_id = headers.get("shared-client-id") == "true"
        self.bridge = headers.get(BRIDGE_HEADER) or None
        return ConnectCommand(
            headers.get("login"), headers.get("passcode"), headers.get("client-id"), shares_client_id, answer,
            self.bridge, headers.get(DUPLEX_HEADER) == "true", headers.get(CLUSTER_HEADER), headers.get("reconnect"),
            headers.get(WAY_HEADER, "") if self.bridge is not None else "", headers.get(COPIES_HEADER) == "true",
        )  # fmt: skip

    def _send_batch(self, headers: dict[str, str], frame: Frame) -> ClientCommand:
        return SendBatchCommand([self._send(headers, frame.body)])

    def _send_plain(self, frame: SendFrame) -> SendCommand:
        """The SEND in a frame. What decides about it is looked at once for all frames of which it is the same."""
        like = self._known_sends.get(frame.like)
        if like is None:
            headers = named_values(DECIDING, frame.like)
            like = self._send(headers, b"")
            if not may_name_own(headers) and sum(map(len, headers.values())) <= MAX_KNOWN_CHARACTERS:
                if len(self._known_sends) >= MAX_KNOWN_SENDS:
                    self._known_sends.clear()
                self._known_sends[frame.like] = like
        varying = NOTHING_VARIES if frame.varying is None else self._varying_values(frame.varying)
        return SendCommand(
            like.destination,
            like.properties + frame.properties,
            frame.body,
            like.persistent,
            like.priority,
            whole_number("expires", varying["expires"]) if "expires" in varying else 0,
            whole_number("timestamp", varying["timestamp"]) if "timestamp" in varying else None,
            varying.get("transaction"),
            frame.receipt,
            like.is_bytes or frame.is_counted,
        )

    def _varying_values(self, values: Values) -> dict[str, str]:
        """Return these values by name; they are often those of the message before, in a transaction above all."""
        known, named = self._last_varying
        if values != known:
            self._last_varying = values, named = values, named_values(VARYING, values)
        return named

    def _send(self, headers: dict[str, str], body: bytes) -> SendCommand:
        destination = headers.get("destination")
        if not destination:
            raise RequestRefused("SEND without a destination header")
        if self.bridge is not None and ENCODING_HEADER in headers:
            headers, body = decompress(headers, body, self._limits.max_body)
        if not self._naming.is_plain:
            headers = self._with_routing_type(destination, headers)
        destination = self._naming.resolve_send(destination, headers)
        headers = apply_jms_names(headers)
        if "reply-to" in headers:
            headers = {**headers, "reply-to": self._naming.resolve_reply_to(headers["reply-to"])}
        get = headers.get
        properties = self._user_headers_of(headers) + properties_of(headers)
        if self.bridge is not None:
            properties += origin_of(headers) + jms_lines_of(headers)
        jms_form = JmsForm.parse(headers[JMS_HEADER]) if self.bridge is not None and JMS_HEADER in headers else None
        if "transformation" in headers and jms_form is None and (wrong := find_error(headers["transformation"], body)):
            properties += f"transformation-error:{escape(wrong)}\n"
        return SendCommand(
            destination,
            properties,
            body,
            get("persistent") == "true",
            priority_of(headers),
            whole_number("expires", headers["expires"]) if "expires" in headers else 0,
            whole_number("timestamp", headers["timestamp"]) if "timestamp" in headers else None,
            get("transaction"),
            get("receipt"),
            has_content_length(headers) if jms_form is None else jms_form.kind is JmsKind.BYTES,
            self._bridged_origin(headers),
        )

    def _user_headers_of(self, headers: dict[str, str]) -> str:
        """Return the header lines that name the producer; of a bridged message the producer at its broker."""
        if self.bridge is None:
            return self.user_headers
        stamp = f"{USER_ID}:{escape(headers[USER_ID])}\n" if USER_ID in headers else self.user_headers
        return stamp + "redelivered:true\n" if headers.get("redelivered") == "true" else stamp

    def _bridged_origin(self, headers: dict[str, str]) -> BridgedOrigin | None:
        if self.bridge is None or MESSAGE_ID not in headers:
            return None
        path, held = (parse_path(headers.get(name, "")) for name in (PATH_HEADER, BOUND_QUEUES_HEADER))
        return BridgedOrigin(headers[MESSAGE_ID], path, held)

    def _with_routing_type(self, destination: str, headers: dict[str, str]) -> dict[str, str]:
        """The headers of a SEND with what a prefix says of the destination: consumers are told."""
        routing = self._naming.routing_type_by_prefix(destination)
        return headers if routing is None or SEND_TYPE in headers else {**headers, SEND_TYPE: str(routing)}

    def _subscribe(self, headers: dict[str, str], _frame: Frame) -> ClientCommand:
        destination, id = headers.get("destination"), headers.get("id")
        if not destination:
            raise RequestRefused("SUBSCRIBE without a destination header")
        if id is None and self.version != "1.0":
            raise RequestRefused("SUBSCRIBE without an id header")
        browser = headers.get("browser") == "true"
        if browser and self.version == "1.0":
            raise RequestRefused("browser:true needs STOMP 1.1 or later")
        destination = self._naming.resolve_subscribe(destination, headers)
        ack_mode = headers.get("ack", "auto")
        return SubscribeCommand(
            id,
            destination,
            ack_mode if ack_mode in ACK_MODES else "auto",
            self._selector_of(headers),
            browser,
            options_of(headers, of_bridge=self.bridge is not None),
            headers.get("receipt"),
            headers.get("transformation"),
        )

    def _selector_of(self, headers: dict[str, str]) -> str | None:
        """Return the selector of a SUBSCRIBE: STOMP has text only, so constants of text may stand for numbers."""
        selector = headers.get("selector")
        if not selector or self.bridge is not None:  # a bridge passes on what its consumers asked for
            return selector or None
        return converting(selector)

    def _unsubscribe(self, headers: dict[str, str], _frame: Frame) -> ClientCommand:
        id, name = headers.get("id"), subscription_name(headers)
        if self.bridge is not None and KEEP_HEADER in headers:
            return UnsubscribeCommand(None, None, None, headers.get("receipt"), parse_path(headers[KEEP_HEADER]))
        if id is None and name is None and (self.version != "1.0" or "destination" not in headers):
            raise RequestRefused("UNSUBSCRIBE without an id header")
        destination = headers.get("destination")
        named = destination and self._naming.resolve_subscribe(destination, headers)
        return UnsubscribeCommand(id, named, name, headers.get("receipt"))

    def _settle(self, headers: dict[str, str], frame: Frame) -> ClientCommand:
        if frame.command == "NACK" and self.version == "1.0":
            raise RequestRefused("NACK is not a command of STOMP 1.0")
        name = ACK_HEADER[self.version]
        ack_id = headers.get(name)
        if ack_id is None:
            raise _missing_header(frame.command, name)
        subscription = headers.get("subscription") if self.version != "1.2" else None
        if subscription is None and self.version == "1.1":
            raise _missing_header(frame.command, "subscription")
        reason = headers.get(REASON_HEADER, "") if self.bridge is not None else ""
        transaction, receipt = headers.get("transaction"), headers.get("receipt")
        if frame.command == "NACK":
            return NackCommand(ack_id, subscription, transaction, receipt, reason)
        return AckBatchCommand([ack_id], [subscription], [receipt], transaction)

    def _transaction(self, _headers: dict[str, str], frame: Frame) -> ClientCommand:
        return SendBatchCommand([_transaction_command(frame)])

    def _disconnect(self, headers: dict[str, str], _frame: Frame) -> ClientCommand:
        self._enter(SessionState.CLOSED)
        return DisconnectCommand(headers.get("receipt"))

    def connected(self, headers: dict[str, str], session: str, broker: str) -> bytes:
        """Return the CONNECTED frame; a bridge is told which broker this is, and its limits."""
        if self.bridge is not None:
            limits = f"{self._limits.max_body},{self._limits.max_frame or 0}"
            headers = {**headers, BRIDGE_HEADER: broker, LIMITS_HEADER: limits}
        return self.server_frames.connected({**headers, "session": session})


HANDLERS: dict[SessionState, dict[str, Callable[[StompSession, dict[str, str], Frame], ClientCommand]]] = {
    SessionState.NEW: {
        "CONNECT": StompSession._connect,
        "STOMP": StompSession._connect,
    },
    SessionState.CONNECTED: {
        "SEND": StompSession._send_batch,
        "SUBSCRIBE": StompSession._subscribe,
        "UNSUBSCRIBE": StompSession._unsubscribe,
        "ACK": StompSession._settle,
        "NACK": StompSession._settle,
        "BEGIN": StompSession._transaction,
        "COMMIT": StompSession._transaction,
        "ABORT": StompSession._transaction,
        "DISCONNECT": StompSession._disconnect,
    },
    SessionState.CLOSED: {},
}
#: How a command begins, and which it is: ActiveMQ looks no further.
BEGINNINGS = (
    ("SEND", "SEND"), ("ACK", "ACK"), ("NACK", "NACK"), ("BEGIN", "BEGIN"), ("COMMIT", "COMMIT"), ("ABORT", "ABORT"),
    ("SUB", "SUBSCRIBE"), ("UNSUB", "UNSUBSCRIBE"), ("CONNECT", "CONNECT"), ("STOMP", "STOMP"),
    ("DISCONNECT", "DISCONNECT"),
)  # fmt: skip
TRANSACTION_ACTIONS: dict[str, type[TransactionCommand]] = {
    "BEGIN": BeginCommand,
    "COMMIT": CommitCommand,
    "ABORT": AbortCommand,
}


def _transaction_command(frame: Frame | SendFrame) -> TransactionCommand:
    name = frame.headers.get("transaction")
    if not name:
        raise RequestRefused(f"{frame.command} without a transaction header")
    return TRANSACTION_ACTIONS[frame.command](name, frame.headers.get("receipt"))


def _heart_beat(text: str, limits: ConnectionLimits) -> tuple[int, int]:
    """Return the intervals the server sends and expects, in ms: the client's two swapped, none below the floor."""
    parts = text.split(",")
    if len(parts) != 2 or not all(len(part) <= HEART_BEAT_DIGITS and part.strip().isdecimal() for part in parts):
        raise ProtocolError(f"heart-beat:{text[:40]} is not two numbers of milliseconds")
    floor, ceiling = limits.heart_beat_floor_ms, limits.heart_beat_ceiling_ms
    client_sends, client_wants = (int(part) and max(int(part), floor) for part in parts)
    return min(client_wants, ceiling), client_sends


def _missing_header(command: str, header: str) -> RequestRefused:
    return RequestRefused(f"{command} without the header {header}")
