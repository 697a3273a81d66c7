"""Messages of queues, browsed without consuming them, and sending."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal

from django.http import Http404, HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from brokerapp.admin.handlers.operator_send import MAX_COUNT, OperatorMessage
from brokerapp.engine.editing.message_edit import body_of
from brokerapp.engine.editing.operator_message import check_size
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import END_OF_LOG
from brokerapp.selectors import compile_selector
from console.access.masking import MaskedMessage, check_selector, mask_message
from console.access.permissions import require, visible
from console.access.roles import Verb
from console.api.common.inputs import Count, RequestBody
from console.api.common.operations import operation
from console.audit import trail
from console.broker.gateway import gateway
from console.destinations.api import of_address
from console.messages.jobs import edit_message as editing

UNNAMED = "How many there are beside these, which you may not see"

router = Router(tags=["messages"])
sending = Router(tags=["messages"])  #: what is not about one queue
#: Messages of one page.
MOST = 500


class BrowsedOut(Schema):
    """A message as this caller may see it."""

    seq: int = Field(description="Its number: grows with time of arrival, unique in the broker")
    id: str
    destination: str
    original_destination: str | None
    headers: dict[str, str]
    size: int = Field(description="Bytes of the whole body")
    body: str | None = Field(description="As text, or in base64; null when it is withheld")
    encoding: Literal["text", "base64"]
    withheld: str = Field(description="Why the body is not shown")
    masked: list[str] = Field(description="What was covered")


class BrowsePageOut(Schema):
    """Part of a queue, in order. Ask on with `after=next` (of the newest: `before=next`), which is null at the end."""

    items: list[BrowsedOut]
    scanned: int = Field(description="Messages looked at for this page")
    next: int | None


class BrowseQuery(Schema):
    """Which messages."""

    after: Count = 0
    limit: Annotated[int, Field(ge=1, le=MOST)] = 50
    selector: str = ""


class QueueQuery(BrowseQuery):
    """The same, or from the end back."""

    newest: bool = Field(False, description="The last ones, in order; ask on with `before=next`")
    before: Count = Field(0, description="0: from the end")


class Written(RequestBody):
    """A message as a caller writes it."""

    destination: str = Field(description="`/queue/NAME`, `/topic/NAME`, or in native form")
    body: str = ""
    encoding: Literal["text", "base64"] = "text"
    properties: dict[str, str] = {}
    persistent: bool = True
    priority: Annotated[int, Field(ge=0, le=9)] = 4
    expires: Count = Field(0, description="Milliseconds since the epoch; 0: never")

    def message(self) -> OperatorMessage:
        """As the broker takes it. Raises RequestRefused."""
        body, is_bytes = check_size(body_of(self.body, self.encoding)), self.encoding == "base64"
        return OperatorMessage(
            self.destination, self.properties, body, self.persistent, self.priority, self.expires, is_bytes
        )  # fmt: skip


class Outgoing(Written):
    """Messages alike to send. Properties AMQ_SCHEDULED_DELAY and the like have them wait."""

    count: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 1


class Changed(Written):
    """A message to send in place of another."""

    reason: str = Field(description="It stands in the record of the message")


class Sent(Schema):
    """What became of it."""

    id: str = Field(description="message-id of the first")
    count: int
    queues: list[str] = Field(description="That messages like it come to now")
    unnamed: int = Field(description=UNNAMED)


class Edited(Schema):
    """What became of an edited message."""

    id: str
    places: list[str]
    unnamed: int = Field(description=UNNAMED)


@operation(router, "GET", "/{name:name}/messages", Verb.BROWSE, of_address, response=BrowsePageOut)
def browse_messages(request: HttpRequest, name: str, query: Annotated[QueueQuery, Query()]) -> Any:
    """Browse a queue without consuming it."""
    queue = Destination.queue(name)
    if query.selector:
        check_selector(request.user, compile_selector(query.selector), queue)
    browse, start = gateway().browse, query.after
    if query.newest:
        browse, start = gateway().browse_back, query.before or END_OF_LOG
    page = browse(queue, start, query.limit, query.selector or None)
    items = [shown(mask_message(request.user, each, queue)) for each in page.messages]
    return {"items": items, "scanned": page.scanned, "next": page.next}


@operation(router, "GET", "/{name:name}/messages/{int:seq}", Verb.BROWSE, of_address, response=BrowsedOut)
def get_message(request: HttpRequest, name: str, seq: Count) -> Any:
    """One message of a queue."""
    queue = Destination.queue(name)
    found = gateway().message(queue, seq).messages
    if not found:
        raise Http404(f"There is no message {seq} in {queue}: it was consumed, it expired, or somebody removed it.")
    return shown(mask_message(request.user, found[0], queue))


@operation(router, "POST", "/{name:name}/messages/{int:seq}/edited", Verb.EDIT, of_address, response=Edited)
def edit_message(request: HttpRequest, name: str, seq: Count, wanted: Changed) -> Any:
    """Send a message in place of one, which goes in the same moment."""
    queue = Destination.queue(name)
    answer = editing.send_instead(
        request, queue, editing.to_edit(request, queue, seq), wanted.message(), wanted.reason.strip()
    )
    return {"id": answer["id"], **_places(request, answer["places"], "places")}


@operation(sending, "POST", "/messages", Verb.SEND, response={201: Sent})
def send_messages(request: HttpRequest, wanted: Outgoing) -> Any:
    """Send messages as a client would."""
    message = wanted.message()
    targets = Destination.parse_list(message.destination)
    for each in targets:
        require(request, Verb.SEND, each)
    about = {"count": wanted.count, "bytes": len(message.body), "properties": wanted.properties}
    with trail.recording(request, "send", targets[0], before=about) as change:
        answer = gateway().send(message.to_json(), wanted.count, request.user.get_username())
        change.after = {"first": answer["id"], "queues": answer["queues"]}
    sent = {"id": answer["id"], "count": answer["count"], **_places(request, answer["queues"], "queues")}
    return Status(201, sent)


def _places(request: HttpRequest, places: list[str], name: str) -> dict[str, Any]:
    """Those one may know of under this name, and how many more there are."""
    sees = visible(request.user)
    named = [each for each in places if sees(Destination.parse(each))]
    return {name: named, "unnamed": len(places) - len(named)}


def shown(message: MaskedMessage) -> dict[str, Any]:
    """A message as an answer has it."""
    fields = ("seq", "id", "destination", "original_destination", "headers", "size", "withheld")
    told = {name: getattr(message, name) for name in fields} | {"masked": list(message.masked)}
    if message.withheld:
        return told | {"body": None, "encoding": "text"}
    try:
        return told | {"body": message.body.decode(), "encoding": "text"}
    except UnicodeDecodeError:
        return told | {"body": base64.b64encode(message.body).decode(), "encoding": "base64"}
