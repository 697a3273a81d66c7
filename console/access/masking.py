"""Mask browsed messages by the rules of the reader's roles, before their bytes leave the server.

Whoever may not read bodies gets none. Roles of `rights.MASKED` get a body's structure without its values, but for what
rules show; what has no structure that could be told from its values is withheld. Rules take away from everybody they
are for. Of several roles that somebody has for a destination, the mightiest one decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from brokerapp.engine.policy.broker_headers import CLAIMED_ROUTE, ROUTE
from brokerapp.errors import InvalidDestination, RequestRefused
from brokerapp.model.destination import LIST_SEPARATOR, Destination
from brokerapp.model.stats_records import BrowsedMessage
from brokerapp.openwire.shown_messages import jms_form
from brokerapp.selectors import Selector, compile_selector
from brokerapp.selectors.identifiers import identifier_for
from console.access.masking_bodies import MaskedBody, mask_body
from console.access.masking_rules import MaskRule, mask_headers, rule_for_header
from console.access.models import MaskingRule
from console.access.permission_version import permission_state
from console.access.permissions import (
    AnyUser,
    Permission,
    Role,
    grants_of,
    missing_permission_message,
    permission_message,
)
from console.access.roles import MASKED_ROLES, RoleGrant

#: Roles by might, the least first.
_BY_POWER = (Role.VIEWER, Role.ANALYST, Role.SUPPORT, Role.OPERATOR, Role.ADMIN)


@dataclass(frozen=True, slots=True)
class MaskedMessage(BrowsedMessage):
    """Hold a browsed message without the values that its reader may not see; `size` is that of the whole body."""

    withheld: str = ""  #: why the body is not shown at all; "": it is, perhaps masked
    masked: tuple[str, ...] = ()  #: what was masked, in words: `card`, `$.customer.card`, `all values`

    @property
    def is_unmasked(self) -> bool:
        """Return whether no message there is masked for this user, so that none has to be read."""
        return not (self.masked or self.withheld)

    def require_unmasked(self, reader: str = "your role") -> None:
        """Raise RequestRefused if anything is masked: an edited copy would lose or expose it."""
        if not self.is_unmasked:
            raise RequestRefused(
                f"Parts of this message are masked for {reader}. Editing requires access to the whole message."
            )


_known: tuple[object, tuple[MaskRule, ...]] = (None, ())


def all_rules() -> tuple[MaskRule, ...]:
    """Return all active masking rules in the order in which they apply."""
    global _known
    state = permission_state()
    if _known[0] != state:
        _known = (state, tuple(each.rule for each in MaskingRule.objects.filter(active=True)))
    return _known[1]


def mask_message(user: AnyUser, message: BrowsedMessage, where: Destination | None = None) -> MaskedMessage:
    """Return the message as this user may see it, browsed in the queue `where` (default: its destination)."""
    where = where or Destination.parse(message.destination)
    browser, reader = _most_powerful(grants_of(user), Permission.BROWSE, where), reader_role(grants_of(user), where)
    found = mask_for_roles(browser, reader, message, _locations(message, where), all_rules())
    return found if reader is not None else replace(found, withheld=missing_permission_message(user, Permission.READ))


def mask_values(user: AnyUser, values: Mapping[str, str], where: Destination) -> dict[str, str]:
    """Return headers that a message there may get, as this user would see them."""
    browser = _most_powerful(grants_of(user), Permission.BROWSE, where)
    return mask_headers(_rules_for(all_rules(), browser, (where,)), values)[0]


def mask_headers_of(user: AnyUser, message: BrowsedMessage, where: Destination) -> dict[str, str]:
    """Return the headers of a message browsed there, as this user may see them, without reading its body."""
    browser = _most_powerful(grants_of(user), Permission.BROWSE, where)
    return mask_headers(_rules_for(all_rules(), browser, _locations(message, where)), message.headers)[0]


def is_unmasked(user: AnyUser, where: Destination) -> bool:
    """Return whether no part of any message at a destination is masked for this user, whatever the message."""
    reader = reader_role(grants_of(user), where)
    return reader is not None and reader not in MASKED_ROLES and not all_rules()


def _locations(message: BrowsedMessage, where: Destination) -> tuple[Destination, ...]:
    """Return where the message is and was: a rule for its former queue still applies after a move.

    Whoever wrote it, the broker or a client: a place too many only masks more.
    """
    said = (message.headers.get(name) for name in (ROUTE, CLAIMED_ROUTE))
    texts = (message.destination, message.original_destination, message.came_from, *said)
    names = LIST_SEPARATOR.join(filter(None, texts)).split(LIST_SEPARATOR)
    return (where, *(place for each in names if (place := _parse_location(each)) is not None))


def _parse_location(text: str) -> Destination | None:
    try:
        return Destination.parse(text)
    except InvalidDestination:  # a client wrote it: it takes nothing from the others
        return None


def mask_for_roles(
    browser: Role | None,
    reader: Role | None,
    message: BrowsedMessage,
    ways: tuple[Destination, ...],
    rules: tuple[MaskRule, ...],
) -> MaskedMessage:
    """Return the message as these roles see it: one to browse it, one to read its body (None: no body)."""
    headers, names = mask_headers(_rules_for(rules, browser, ways), message.headers)
    if reader is None:
        body = MaskedBody(b"", permission_message(Permission.READ))
    else:
        form = jms_form(message.headers)
        body = mask_body(_rules_for(rules, reader, ways), message.body, covered=reader in MASKED_ROLES, form=form)
    changes: dict[str, Any] = {
        "headers": headers,
        "body": body.body,
        "withheld": body.withheld,
        "masked": (*names, *body.places),
    }
    return MaskedMessage(**{each.name: getattr(message, each.name) for each in fields(BrowsedMessage)} | changes)


def check_selector(user: AnyUser, selector: Selector | str, where: Destination) -> None:
    """Raise RequestRefused when the selector uses a header or body that is masked for this user.

    Raises SelectorSyntaxError when it is none; an empty text asks for nothing.
    """
    if not selector:
        return
    if isinstance(selector, str):
        selector = compile_selector(selector)
    # Whatever the scopes of rules: messages from there may be anywhere.
    browser, reader = _most_powerful(grants_of(user), Permission.BROWSE, where), reader_role(grants_of(user), where)
    here = [rule for rule in all_rules() if rule.role in (None, browser)]
    if hidden := sorted(name for name in selector.properties if _is_hidden(here, name)):
        raise RequestRefused(f"{', '.join(hidden)} is masked for your role and cannot be used in a selector")
    sees_bodies = (
        reader is not None and reader not in MASKED_ROLES and not any(r.role in (None, reader) for r in all_rules())
    )
    if "XPATH" in selector.text.upper() and not sees_bodies:
        raise RequestRefused("Bodies are masked for your role. A selector cannot read them.")


def _is_hidden(rules: list[MaskRule], name: str) -> bool:
    """Return whether a rule masks the header of this selector name (JMSCorrelationID is correlation-id)."""
    return any(rule_for_header(rules, each) for each in (name, *identifier_for(name).headers))


def browsing_roles(user: AnyUser) -> tuple[Role, ...]:
    """Return the roles whose masking rules may apply to messages that a user browses anywhere.

    A role that is less powerful than one with which the user browses everywhere decides nowhere.
    """
    grants = [each for each in grants_of(user) if each.role in _BY_POWER and each.allows(Permission.BROWSE)]
    least = max((_BY_POWER.index(each.role) for each in grants if each.is_everywhere), default=0)
    return tuple(dict.fromkeys(each.role for each in grants if _BY_POWER.index(each.role) >= least))


def reader_role(grants: tuple[RoleGrant, ...], where: Destination) -> Role | None:
    """Return the most powerful role in which these grants read bodies there; None where none does."""
    return _most_powerful(grants, Permission.READ, where)


def _most_powerful(grants: tuple[RoleGrant, ...], permission: Permission, where: Destination) -> Role | None:
    having = [grant.role for grant in grants if grant.allows(permission, where) and grant.role in _BY_POWER]
    return max(having, key=_BY_POWER.index, default=None)


def _rules_for(rules: tuple[MaskRule, ...], role: Role | None, ways: tuple[Destination, ...]) -> tuple[MaskRule, ...]:
    return tuple(
        rule
        for rule in rules
        if rule.role in (None, role) and (rule.scope.is_everything or any(map(rule.scope.contains, ways)))
    )
