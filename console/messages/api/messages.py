"""REST operations that browse, edit and send messages."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal

from django.http import Http404, HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from brokerapp.admin.handlers.operator_send import MAX_COUNT, OperatorMessage
from brokerapp.engine.editing.message_edit import body_of
from brokerapp.engine.editing.operator_message import check_size
from brokerapp.engine.editing.typed_message import typed_headers, typed_message
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.jms.form import JmsKind
from brokerapp.model.jms.typed_text import ENTRY_TYPE_NAMES, PROPERTY_TYPE_NAMES, STRING
from brokerapp.model.stats_records import END_OF_LOG, BrowsedMessage
from brokerapp.openwire.shown_messages import JmsContent, TypedValue, jms_form, read_content, shown_headers
from brokerapp.openwire.written_maps import encode_written_map
from brokerapp.selectors import compile_selector
from console.access.masking import MaskedMessage, check_selector, mask_message
from console.access.permissions import require, visible
from console.access.roles import Permission
from console.api.common.inputs import Count, RequestBody
from console.api.common.operations import operation
from console.audit import trail
from console.broker.gateway import gateway
from console.destinations.api import addressed_destination
from console.messages.jobs import edit_message as editing
from console.messages.message_view import MessageView, PropertyRow

HIDDEN = "Number of destinations hidden by missing permission"

router = Router(tags=["messages"])
sending = Router(tags=["messages"])  #: operations without a queue in their path
#: Messages of one page.
MAX_PAGE = 500


class TypedValueOut(Schema):
    """A property, or a value of a map or stream message, whose name in a stream is its position."""

    name: str
    type: str = Field(description="As Java writes it: `string`, `int`, `boolean`, `byte[]`; `object` is a map or list")
    value: str


class JmsOut(Schema):
    """What a message from a JMS client is beside its headers and body."""

    kind: JmsKind
    properties: list[TypedValueOut]
    values: list[TypedValueOut] = Field(description="Values of a map or stream message, unless its body is withheld")
    class_name: str = Field(description="Class of the object of an object message, which is not read")


class BrowsedMessageOut(Schema):
    """A message, masked for the caller."""

    seq: int = Field(description="Message number: increases in order of arrival, unique in the broker")
    id: str
    destination: str
    original_destination: str | None
    headers: dict[str, str]
    size: int = Field(description="Bytes of the whole body")
    body: str | None = Field(description="Text or base64; null if withheld")
    encoding: Literal["text", "base64"]
    withheld: str = Field(description="Reason why the body is withheld")
    masked: list[str] = Field(description="Names of masked parts")
    jms: JmsOut | None = Field(description="Of a message from a JMS client; null for others")


class BrowsePageOut(Schema):
    """A page of a queue in order. Continue with `after=next` (newest: `before=next`); null at the end."""

    items: list[BrowsedMessageOut]
    scanned: int = Field(description="Messages scanned for this page")
    next: int | None


class BrowseQuery(Schema):
    """Position, page size and selector."""

    after: Count = 0
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 50
    selector: str = ""


class QueueBrowseQuery(BrowseQuery):
    """Position, page size and selector, optionally from the newest message back."""

    newest: bool = Field(False, description="Return the newest messages, in order; continue with `before=next`")
    before: Count = Field(0, description="Message number to end before; 0 = from the newest")


class MapEntryIn(RequestBody):
    """An entry of a map message."""

    name: str
    type: Literal[ENTRY_TYPE_NAMES] = STRING
    value: str = Field("", description="As text; of a `byte[]` in hexadecimal digits")


class MessageIn(RequestBody):
    """A message to send."""

    destination: str = Field(description="`/queue/NAME`, `/topic/NAME`, or in native form")
    kind: Literal["text", "bytes", "map"] | None = Field(
        None,
        description="What JMS clients get. Default: `bytes` with `base64` or `hex`, `map` with `values`, else `text`",
    )
    body: str = ""
    encoding: Literal["text", "base64", "hex"] = Field("text", description="How `body` is written")
    values: list[MapEntryIn] = Field([], description="Entries of a map message, which has no `body`")
    properties: dict[str, str] = {}
    types: dict[str, Literal[PROPERTY_TYPE_NAMES]] = Field(
        {}, description="JMS types of properties by name; others are strings"
    )
    persistent: bool = True
    priority: Annotated[int, Field(ge=0, le=9)] = 4
    expires: Count = Field(0, description="Unix time in milliseconds; 0 = never expires")

    def to_message(self, is_jms: bool = False) -> OperatorMessage:
        """Convert to a message of the broker; `is_jms`: keep the JMS form even without types. Raises RequestRefused."""
        if unknown := sorted(self.types.keys() - self.properties.keys()):
            raise RequestRefused(f"types: {unknown[0]!r} is not one of the properties")
        kind = self.kind_written
        if kind is JmsKind.MAP and self.body:
            raise RequestRefused("body: a map message has values instead of a body")
        if self.values and kind is not JmsKind.MAP:
            raise RequestRefused(f"values: only a map message has values, not a {kind} message")
        rows = ((each.name, each.type, each.value) for each in self.values)
        body = encode_written_map(rows) if kind is JmsKind.MAP else body_of(self.body, self.encoding)
        check_size(len(body))
        typed = ((name, type, self.properties[name]) for name, type in self.types.items())
        values, types = typed_headers(typed)
        return typed_message(
            self.destination, kind=kind, body=body, properties={**self.properties, **values}, types=types,
            persistent=self.persistent, priority=self.priority, expires=self.expires, is_jms=is_jms,
        )  # fmt: skip

    @property
    def kind_written(self) -> JmsKind:
        """Return the kind: the one that is given, or the one that body and values mean."""
        if self.kind is not None:
            return JmsKind(self.kind)
        if self.values:
            return JmsKind.MAP
        return JmsKind.TEXT if self.encoding == "text" else JmsKind.BYTES


class SendIn(MessageIn):
    """One or more identical messages to send. Properties such as AMQ_SCHEDULED_DELAY schedule them."""

    count: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 1


class EditIn(MessageIn):
    """A message that replaces a stored one. Without `kind`, `values` and `types` it keeps the JMS types of that one."""

    reason: str = Field(description="Recorded in the audit log and the journey")

    def to_replacement(self, original: BrowsedMessage) -> OperatorMessage:
        """Convert to a message of the broker in place of the original. Raises RequestRefused."""
        is_typed = bool(self.kind or self.values or self.types)
        return self.to_message(is_jms=is_typed and jms_form(original.headers) is not None)


class SentOut(Schema):
    """Result of sending: id of the first message and the queues reached."""

    id: str = Field(description="Message id of the first message")
    count: int
    queues: list[str] = Field(description="Queues that the message was routed to")
    unnamed: int = Field(description=HIDDEN)


class EditedOut(Schema):
    """Result of an edit: id and destinations of the new message."""

    id: str
    places: list[str]
    unnamed: int = Field(description=HIDDEN)


@operation(router, "GET", "/{name:name}/messages", Permission.BROWSE, addressed_destination, response=BrowsePageOut)
def browse_messages(request: HttpRequest, name: str, query: Annotated[QueueBrowseQuery, Query()]) -> Any:
    """Browse a queue without consuming it."""
    queue = Destination.queue(name)
    if query.selector:
        check_selector(request.user, compile_selector(query.selector), queue)
    browse, start = gateway().browse, query.after
    if query.newest:
        browse, start = gateway().browse_back, query.before or END_OF_LOG
    page = browse(queue, start, query.limit, query.selector or None)
    items = [message_out(mask_message(request.user, each, queue)) for each in page.messages]
    return {"items": items, "scanned": page.scanned, "next": page.next}


@operation(
    router,
    "GET",
    "/{name:name}/messages/{int:seq}",
    Permission.BROWSE,
    addressed_destination,
    response=BrowsedMessageOut,
)
def get_message(request: HttpRequest, name: str, seq: Count) -> Any:
    """Return one message of a queue."""
    queue = Destination.queue(name)
    found = gateway().message(queue, seq).messages
    if not found:
        raise Http404(f"Message {seq} not found in {queue}. It was consumed, deleted or has expired.")
    return message_out(mask_message(request.user, found[0], queue))


@operation(
    router, "POST", "/{name:name}/messages/{int:seq}/edited", Permission.EDIT, addressed_destination, response=EditedOut
)
def edit_message(request: HttpRequest, name: str, seq: Count, wanted: EditIn) -> Any:
    """Replace a message atomically by an edited one."""
    queue = Destination.queue(name)
    original = editing.get_editable(request, queue, seq)
    answer = editing.replace_message(request, queue, original, wanted.to_replacement(original), wanted.reason.strip())
    return {"id": answer["id"], **_visible_destinations(request, answer["places"], "places")}


@operation(sending, "POST", "/messages", Permission.SEND, response={201: SentOut})
def send_messages(request: HttpRequest, wanted: SendIn) -> Any:
    """Send messages to a destination; they are routed like any client's."""
    message = wanted.to_message()
    targets = Destination.parse_list(message.destination)
    for each in targets:
        require(request, Permission.SEND, each)
    about: dict[str, Any] = {"count": wanted.count, "bytes": len(message.body), "properties": wanted.properties}
    about |= {"kind": wanted.kind_written.value} if wanted.kind_written is not JmsKind.TEXT else {}
    with trail.recording(request, "send", targets[0], before=about) as change:
        answer = gateway().send(message.to_json(), wanted.count, request.user.get_username())
        change.after = {"first": answer["id"], "queues": answer["queues"]}
    sent = {"id": answer["id"], "count": answer["count"], **_visible_destinations(request, answer["queues"], "queues")}
    return Status(201, sent)


def _visible_destinations(request: HttpRequest, places: list[str], name: str) -> dict[str, Any]:
    """Return the visible destinations under a name, and the number of hidden ones."""
    sees = visible(request.user)
    named = [each for each in places if sees(Destination.parse(each))]
    return {name: named, "unnamed": len(places) - len(named)}


def message_out(message: MaskedMessage) -> dict[str, Any]:
    """Return the fields of a message for a response."""
    fields = ("seq", "id", "destination", "original_destination", "size", "withheld")
    told = {name: getattr(message, name) for name in fields}
    told |= {"headers": shown_headers(message.headers), "masked": list(message.masked), "jms": _jms_out(message)}
    if message.withheld:
        return told | {"body": None, "encoding": "text"}
    try:
        return told | {"body": message.body.decode(), "encoding": "text"}
    except UnicodeDecodeError:
        return told | {"body": base64.b64encode(message.body).decode(), "encoding": "base64"}


def _jms_out(message: MaskedMessage) -> dict[str, Any] | None:
    """Return what a message of a JMS client is, for a response; None for others."""
    form = jms_form(message.headers)
    if form is None:
        return None
    content = None if message.withheld else read_content(form, message.body)
    content = content or JmsContent()
    return {
        "kind": form.kind, "class_name": content.class_name,
        "properties": [_typed_out(each) for each in MessageView(message).property_rows],
        "values": [_typed_out(each) for each in content.values],
    }  # fmt: skip


def _typed_out(each: TypedValue | PropertyRow) -> dict[str, str]:
    return {"name": each.name, "type": each.type, "value": each.value}
