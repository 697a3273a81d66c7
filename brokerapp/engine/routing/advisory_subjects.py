"""Know what the documents of advisories say began or ended: connections, consumers, producers, destinations. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

#: The body of an advisory; its values are JSON.
Document = dict[str, Any]

#: What says that something began, the member that names it, and what the id is called where it ended.
_BEGINNINGS = (
    ("ConsumerInfo", "consumerId", "ConsumerId"),
    ("ProducerInfo", "producerId", "ProducerId"),
    ("ConnectionInfo", "connectionId", "ConnectionId"),
)
_REMOVAL, _DESTINATION = "RemoveInfo", "DestinationInfo"
#: What the member is called that holds the id of what an advisory is about.
_ID_MEMBERS = {**{name: member for name, member, _ in _BEGINNINGS}, _REMOVAL: "objectId"}
#: `operationType` of a DestinationInfo.
ADDED, REMOVED = 0, 1
#: `lastDeliveredSequenceId` of a RemoveInfo: not known.
_UNKNOWN = -2


class Subject(NamedTuple):
    """What an advisory is about."""

    id: str  #: unlike that of any other on the same topic
    began: bool  #: else it ended


def subject_of(document: Mapping[str, Any]) -> Subject | None:
    """Return what a document says began or ended; None where it says no such thing."""
    try:
        [(name, about)] = document.items()
        if name in _ID_MEMBERS:
            return Subject(_text(about[_ID_MEMBERS[name]]), name != _REMOVAL)
        if name == _DESTINATION:
            kind, destination = about["destination"]["@class"], about["destination"]["string"]
            if isinstance(kind, str) and isinstance(destination, str):
                return Subject(destination, about["operationType"] == ADDED)
    except (AttributeError, KeyError, TypeError, ValueError):  # a client can send to such a topic, too
        pass
    return None


def is_of_destination(document: Mapping[str, Any]) -> bool:
    """Return whether a document is about a destination, which several nodes may have."""
    return _DESTINATION in document


def kind_of(document: Mapping[str, Any]) -> str:
    """Return the type of the id of what began or ended, as OpenWire names it; "" where there is none."""
    if _REMOVAL in document:
        return str(document[_REMOVAL][_ID_MEMBERS[_REMOVAL]].get("@class", ""))
    return next((kind for name, _, kind in _BEGINNINGS if name in document), "")


def ending_of(document: Mapping[str, Any]) -> Document:
    """Return the document that says that what this one says began has ended."""
    for name, member, kind in _BEGINNINGS:
        if name in document:
            return removed(kind, document[name][member])
    return {_DESTINATION: {**document[_DESTINATION], "operationType": REMOVED}}


def removed(kind: str, id: Mapping[str, Any]) -> Document:
    """Return the document that says that the object with this id has ended."""
    return {_REMOVAL: {_ID_MEMBERS[_REMOVAL]: {"@class": kind, **id}, "lastDeliveredSequenceId": _UNKNOWN}}


def _text(id: Mapping[str, Any]) -> str:
    return ":".join(str(value) for name, value in id.items() if name != "@class")
