"""SubscriptionIdentity: topics whose messages are kept for a name. It is durable, or shared, or both.

A durable one outlives its consumers, a shared one has any number of them at a time, on any connection.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from brokerapp.errors import RequestRefused
from brokerapp.model import JsonObject, JsonValue
from brokerapp.model.destination import MAX_NAME, Destination, DestinationKind
from brokerapp.model.selector_prefixes import condition_of

#: `kind` among the attributes of a log in the store that keeps the messages of a named subscription.
SUBSCRIPTION = str(DestinationKind.SUBSCRIPTION)

_NOT_PLAIN = re.compile(r"[%:#?,\s\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class SubscriptionIdentity:
    """A named subscription of topics. `client_id`, `name` and `durable` identify it, as in JMS."""

    client_id: str  #: "": of no client in particular; only a shared one may be so
    name: str
    topics: tuple[Destination, ...]  #: names or patterns
    selector: str | None = None
    no_local: bool = False  #: not what its own client sends
    shared: bool = False
    durable: bool = True
    groups: tuple[str, ...] | None = None  #: of the user it is for, who gets what they may read; None: no user yet
    leads_to: str = ""  #: the broker for whose bridge it is, to which nothing goes back that came from there

    def __post_init__(self) -> None:
        if self.shared:  # JMS clients may call a durable one by an empty name
            check_subscription_name(self.name)
        if not (self.durable or self.shared):
            raise RequestRefused(f"the subscription {self.name!r} is neither durable nor shared: it needs no name")
        if not (self.client_id or self.shared):
            raise RequestRefused(f"the durable subscription {self.name!r} needs a client-id on CONNECT")
        if self.shared and self.no_local:
            raise RequestRefused(f"the shared subscription {self.name!r} cannot leave out what its own clients send")
        if not self.topics:
            raise RequestRefused(f"topics: the subscription {self.name!r} needs at least one topic")
        if wrong := [
            str(each) for each in self.topics if each.kind is not DestinationKind.TOPIC or each.address is not None
        ]:
            raise RequestRefused(f"the subscription {self.name!r} is one of topics, not of {', '.join(wrong)}")
        if len(self.log(1).name) > MAX_NAME:
            raise RequestRefused(f"client-id and name of a subscription have at most {MAX_NAME} characters together")

    @property
    def key(self) -> tuple[str, str, bool]:
        """Return what identifies this subscription among all others."""
        return self.client_id, self.name, self.durable

    @property
    def short_name(self) -> str:
        """Client-id and name as ActiveMQ writes them, fit for the name of a destination: `client:name`."""
        return f"{_plain(self.client_id)}:{_plain(self.name)}" if self.client_id else _plain(self.name)

    def __str__(self) -> str:
        kind = " ".join(word for word, is_so in (("shared", self.shared), ("durable", self.durable)) if is_so)
        return f"{kind} subscription {self.name!r}" + (f" of client-id {self.client_id!r}" if self.client_id else "")

    def has_same_contents(self, other: SubscriptionIdentity) -> bool:
        """Whether what is kept for one would be kept for the other, as far as clients of one protocol can tell."""
        return (self.topics, self.condition, self.no_local) == (other.topics, other.condition, other.no_local)

    @property
    def condition(self) -> str | None:
        """Return the selector as its client wrote it, without what its protocol puts before it."""
        return condition_of(self.selector) if self.selector else self.selector

    def for_reader(self, groups: Iterable[str] | None, leads_to: str) -> SubscriptionIdentity:
        """The same for another user, of these groups, or another bridge."""
        return replace(self, groups=None if groups is None else tuple(groups), leads_to=leads_to)

    def log(self, generation: int) -> Destination:
        """The log of its messages; one that keeps something else under the same name is of another generation."""
        name = f"{_plain(self.client_id)}:{_plain(self.name)}" + ("" if self.durable else ":nonDurable")
        return Destination(DestinationKind.SUBSCRIPTION, name if generation == 1 else f"{name}#{generation}")

    # -- as the attributes of its log in the store

    def attributes(self) -> JsonObject:
        """Return the object as values that JSON can hold."""
        found = {
            "kind": SUBSCRIPTION,
            "client_id": self.client_id,
            "name": self.name,
            "topics": [str(each) for each in self.topics],
            "selector": self.selector,
            "no_local": self.no_local,
            "shared": self.shared,
            "durable": self.durable,
            "groups": self.groups and list(self.groups),
        }
        return {**found, "leads_to": self.leads_to} if self.leads_to else found

    @staticmethod
    def from_attributes(attributes: Mapping[str, JsonValue]) -> SubscriptionIdentity:
        """The inverse of attributes()."""
        values = {
            name: value for name, value in attributes.items() if name in SubscriptionIdentity.__dataclass_fields__
        }
        topics, groups = attributes["topics"], attributes["groups"]
        values["topics"] = tuple(map(Destination.parse, topics))
        return SubscriptionIdentity(**{**values, "groups": None if groups is None else tuple(groups)})


def check_subscription_name(name: str) -> None:
    """Raise RequestRefused where a name is empty: whoever wrote it meant another one."""
    if not name.strip():
        raise RequestRefused("a subscription's name is not empty")


def _plain(text: str) -> str:
    """Without what would make two names one, or a name unreadable; percent-encoded as in a URL."""
    return _NOT_PLAIN.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), text)
