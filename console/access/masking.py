"""Masking: a browsed message as a user may see it, before its bytes leave the server.

Whoever may not read bodies gets none. Roles of `rights.MASKED` get a body's structure without its values, but for what
rules show; what has no structure that could be told from its values is withheld. Rules take away from everybody they
are for. Of several roles that somebody has for a destination, the mightiest one decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from brokerapp.engine.policy.broker_headers import CLAIMED, ROUTE
from brokerapp.errors import InvalidDestination, RequestRefused
from brokerapp.model.destination import LIST_SEPARATOR, Destination
from brokerapp.model.stats_records import BrowsedMessage
from brokerapp.selectors import Selector, compile_selector
from brokerapp.selectors.identifiers import identifier
from console.access.masking_rules import COVER, MaskedBody, Rule, hides_header, mask_body, mask_headers
from console.access.models import MaskingRule
from console.access.permission_version import rights_state
from console.access.permissions import AnyUser, Role, Verb, grants_of, lacking, missing
from console.access.roles import MASKED, Grant

__all__ = [
    "COVER",
    "MaskedMessage",
    "check_selector",
    "headers_for",
    "masked",
    "masked_for",
    "reader_of",
    "rules",
    "sees_all",
    "shown_values",
]

#: Roles by might, the least first.
_BY_MIGHT = (Role.VIEWER, Role.ANALYST, Role.SUPPORT, Role.OPERATOR, Role.ADMIN)


@dataclass(frozen=True, slots=True)
class MaskedMessage(BrowsedMessage):
    """A browsed message without what its reader may not see; `size` is still that of the whole body."""

    withheld: str = ""  #: why the body is not shown at all; "": it is, perhaps masked
    masked: tuple[str, ...] = ()  #: what was masked, in words: `card`, `$.customer.card`, `all values`

    @property
    def is_whole(self) -> bool:
        """Whether its reader sees all of it."""
        return not (self.masked or self.withheld)

    def check_whole(self, reader: str = "your role") -> None:
        """Raise RequestRefused unless its reader sees all of it: the edited one would be without its past, and open."""
        if not self.is_whole:
            raise RequestRefused(f"parts of this message are masked for {reader}: whoever edits one must see all of it")


_known: tuple[object, tuple[Rule, ...]] = (None, ())


def rules() -> tuple[Rule, ...]:
    """All rules, in their order."""
    global _known
    state = rights_state()
    if _known[0] != state:
        _known = (state, tuple(each.rule for each in MaskingRule.objects.filter(active=True)))
    return _known[1]


def masked(user: AnyUser, message: BrowsedMessage, where: Destination | None = None) -> MaskedMessage:
    """The message as this user may see it, browsed in the queue `where` (or else the destination it was sent to)."""
    where = where or Destination.parse(message.destination)
    browser, reader = _mightiest(grants_of(user), Verb.BROWSE, where), reader_of(grants_of(user), where)
    found = masked_for(browser, reader, message, _ways(message, where), rules())
    return found if reader is not None else replace(found, withheld=missing(user, Verb.READ))


def shown_values(user: AnyUser, values: Mapping[str, str], where: Destination) -> dict[str, str]:
    """Headers that a message there may get, as this user would see them on it."""
    browser = _mightiest(grants_of(user), Verb.BROWSE, where)
    return mask_headers(_about(rules(), browser, (where,)), values)[0]


def headers_for(user: AnyUser, message: BrowsedMessage, where: Destination) -> dict[str, str]:
    """The headers of a message browsed there, as this user may see them; its body is not looked at."""
    browser = _mightiest(grants_of(user), Verb.BROWSE, where)
    return mask_headers(_about(rules(), browser, _ways(message, where)), message.headers)[0]


def sees_all(user: AnyUser, where: Destination) -> bool:
    """Whether nothing of any message there is masked for this user: then no message need be looked at to know."""
    reader = reader_of(grants_of(user), where)
    return reader is not None and reader not in MASKED and not rules()


def _ways(message: BrowsedMessage, where: Destination) -> tuple[Destination, ...]:
    """Where the message is and was: what is masked there stays masked when it is moved or becomes a dead letter.

    Whoever wrote it, the broker or a client: a place too many only masks more.
    """
    said = (message.headers.get(name) for name in (ROUTE, CLAIMED))
    texts = (message.destination, message.original_destination, message.came_from, *said)
    names = LIST_SEPARATOR.join(filter(None, texts)).split(LIST_SEPARATOR)
    return (where, *(place for each in names if (place := _place(each)) is not None))


def _place(text: str) -> Destination | None:
    try:
        return Destination.parse(text)
    except InvalidDestination:  # a client wrote it: it takes nothing from the others
        return None


def masked_for(
    browser: Role | None,
    reader: Role | None,
    message: BrowsedMessage,
    ways: tuple[Destination, ...],
    rules: tuple[Rule, ...],
) -> MaskedMessage:
    """The message as somebody sees it who browses it and reads its body (None: does not) in these roles."""
    headers, names = mask_headers(_about(rules, browser, ways), message.headers)
    if reader is None:
        body = MaskedBody(b"", lacking(Verb.READ))
    else:
        body = mask_body(_about(rules, reader, ways), message.body, covered=reader in MASKED)
    changes: dict[str, Any] = {
        "headers": headers,
        "body": body.body,
        "withheld": body.withheld,
        "masked": (*names, *body.places),
    }
    return MaskedMessage(**{each.name: getattr(message, each.name) for each in fields(BrowsedMessage)} | changes)


def check_selector(user: AnyUser, selector: Selector | str, where: Destination) -> None:
    """Raise RequestRefused when the selector would tell this user of a header or body they do not see.

    Raises SelectorSyntaxError when it is none; an empty text asks for nothing.
    """
    if not selector:
        return
    if isinstance(selector, str):
        selector = compile_selector(selector)
    # Whatever the scopes of rules: messages from there may be anywhere.
    browser, reader = _mightiest(grants_of(user), Verb.BROWSE, where), reader_of(grants_of(user), where)
    here = [rule for rule in rules() if rule.role in (None, browser)]
    if hidden := sorted(name for name in selector.properties if _is_hidden(here, name)):
        raise RequestRefused(f"{', '.join(hidden)} is masked for your role: a selector cannot ask for it")
    sees_bodies = reader is not None and reader not in MASKED and not any(r.role in (None, reader) for r in rules())
    if "XPATH" in selector.text.upper() and not sees_bodies:
        raise RequestRefused("bodies are masked for your role: a selector cannot look into them")


def _is_hidden(rules: list[Rule], name: str) -> bool:
    """Whether a header is masked that a name in a selector stands for: JMSCorrelationID is correlation-id."""
    return any(hides_header(rules, each) for each in (name, *identifier(name).headers))


def reader_of(grants: tuple[Grant, ...], where: Destination) -> Role | None:
    """The role in which somebody with these grants reads bodies there; None: they read none."""
    return _mightiest(grants, Verb.READ, where)


def _mightiest(grants: tuple[Grant, ...], verb: Verb, where: Destination) -> Role | None:
    having = [grant.role for grant in grants if grant.allows(verb, where) and grant.role in _BY_MIGHT]
    return max(having, key=_BY_MIGHT.index, default=None)


def _about(rules: tuple[Rule, ...], role: Role | None, ways: tuple[Destination, ...]) -> tuple[Rule, ...]:
    return tuple(
        rule
        for rule in rules
        if rule.role in (None, role) and (rule.scope.is_everything or any(map(rule.scope.holds, ways)))
    )
