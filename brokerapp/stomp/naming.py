"""DestinationNaming: translates the destination names of STOMP clients into the broker's.

`/temp-queue/NAME` means a destination of the connection's own; to everybody else it is `/remote-temp-queue/ID`. A
header (`destination-type`, `subscription-type`) or a prefix of the connector's says whether a plain name is that of a
queue (ANYCAST, and so it is when nobody says) or of a topic (MULTICAST). A connector may say that queues named in a
certain way are the subscription queues of topics, and a file that names have another separator than the dot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from brokerapp.engine.routing.bindings import ROUTING_OPTION, SELECTOR_OPTION, RoutingType
from brokerapp.engine.routing.naming_conventions import PLAIN, NamingConventions
from brokerapp.errors import InvalidDestination, RequestRefused
from brokerapp.model.destination import (
    LIST_SEPARATOR,
    OWN_TEMPORARY,
    QUALIFIER,
    STOMP_PREFIX,
    Destination,
    DestinationKind,
)
from brokerapp.model.message import escape, unescape

#: A client's own temporary destination, which exists from then on.
OwnTemporary = Callable[[DestinationKind, str], Destination]
#: Headers that say what a name is.
SEND_TYPE, SUBSCRIBE_TYPE = "destination-type", "subscription-type"
#: What the text of every own temporary destination holds.
_OWN = "/temp-"
_REMOTE = b"/remote-temp-"
_REPLY_TO = "reply-to:"
_KIND_OF = {RoutingType.ANYCAST: DestinationKind.QUEUE, RoutingType.MULTICAST: DestinationKind.TOPIC}
_TYPED = tuple(form for kind in DestinationKind for form in (STOMP_PREFIX[kind], f"{kind}://"))
_TEMPORARY = tuple(form for form in _TYPED if "temp-" in form)


class DestinationNaming:
    """Resolves destination names of one connection. Texts may be lists, whose elements are resolved one by one."""

    def __init__(self, own: OwnTemporary, conventions: NamingConventions = PLAIN) -> None:
        self._create_own, self._conventions = own, conventions
        self.is_plain = conventions.are_plain  #: names mean here what they mean everywhere

    def resolve_send(self, text: str, headers: Mapping[str, str]) -> str:
        """Return the destination of a SEND. Raises RequestRefused."""
        return self._resolve_list(text, self._resolve_name, SEND_TYPE, headers.get(SEND_TYPE))

    def resolve_subscribe(self, text: str, headers: Mapping[str, str]) -> str:
        """Return the destination of a SUBSCRIBE or UNSUBSCRIBE. Raises RequestRefused."""
        return self._resolve_list(text, self._resolve_consumer_queue, SUBSCRIBE_TYPE, headers.get(SUBSCRIBE_TYPE))

    def resolve_reply_to(self, text: str) -> str:
        """Return the destination of a reply-to; other text stays as it is."""
        return LIST_SEPARATOR.join(map(self._resolve_own, text.split(LIST_SEPARATOR))) if _OWN in text else text

    def routing_type_by_prefix(self, text: str) -> RoutingType | None:
        """Return the routing type of the destination's prefix; None without one."""
        return self._conventions.without_prefix(text.strip())[1]

    def _resolve_list(
        self, text: str, name: Callable[[str, str, str | None], str], header: str, wanted: str | None
    ) -> str:
        if wanted is None and self.is_plain and _OWN not in text:
            return text
        if wanted is not None and wanted not in _KIND_OF:
            raise RequestRefused(f"{header}:{wanted[:40]} is neither {RoutingType.ANYCAST} nor {RoutingType.MULTICAST}")
        return LIST_SEPARATOR.join(name(each, header, wanted) for each in text.strip().split(LIST_SEPARATOR))

    def _resolve_own(self, text: str) -> str:
        for prefix, kind in OWN_TEMPORARY.items():
            if text.startswith(prefix):
                return self._create_own(kind, text[len(prefix) :].strip()).stomp
        return text

    def _resolve_name(self, text: str, header: str, wanted: str | None) -> str:
        if (owned := self._resolve_own(text)) is not text or not text.strip():
            return owned
        name, by_prefix = self._conventions.without_prefix(text)
        name = self._with_separators(name.strip())
        routing = by_prefix if wanted is None else RoutingType(wanted)
        if routing is None:
            return name
        if QUALIFIER in name:  # it is a queue's in any case: this is about its address
            return f"{name}{'&' if '?' in name else '?'}{ROUTING_OPTION}={routing}"
        if not name.startswith(_TYPED):
            name = STOMP_PREFIX[_KIND_OF[routing]] + name
        if Destination.parse(name).is_queue != (routing is RoutingType.ANYCAST):
            raise RequestRefused(f"{header}:{routing} contradicts {name}")
        return name

    def _with_separators(self, text: str) -> str:
        form = next((each for each in _TYPED if text.startswith(each)), "")
        if form in _TEMPORARY:
            return text
        name, mark, options = text[len(form) :].partition("?")
        return form + self._conventions.with_separators(name) + mark + options

    def _resolve_consumer_queue(self, text: str, header: str, wanted: str | None) -> str:
        name = self._resolve_name(text, header, wanted)
        mappings = self._conventions.consumer_queues
        if mappings is None or not name.strip():
            return name
        queue = Destination.parse(name)
        mapped = mappings.mapped(queue.name) if queue.kind is DestinationKind.QUEUE and queue.address is None else None
        if mapped is None:
            return name
        return Destination.queue(mapped.name).stomp + (f"?{SELECTOR_OPTION}=true" if mapped.selector_aware else "")


def _refuse_own(kind: DestinationKind, name: str) -> Destination:
    raise InvalidDestination(name, f"a {kind} cannot be used here")


#: Of a session whose client has no temporary destinations.
NO_OWN_NAMES = DestinationNaming(_refuse_own)


def may_name_own(headers: Mapping[str, str]) -> bool:
    """Whether headers of a SEND may name a destination of the connection's own."""
    return any(_OWN in value for value in headers.values())


def replace_reply_to(head: bytes, own_names: Mapping[str, str]) -> bytes:
    """Header lines of a message, for the client to whom `own_names` belong: it may be asked for a reply there."""
    if _REMOTE not in head:
        return head
    lines = head.decode().split("\n")
    for at, line in enumerate(lines):
        if line.startswith(_REPLY_TO):
            own = own_names.get(unescape(line[len(_REPLY_TO) :]))
            if own is not None:
                lines[at] = _REPLY_TO + escape(own)
    return "\n".join(lines).encode()
