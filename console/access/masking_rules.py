"""Masking rules, and what they do with headers. Pure; `console.access.masking` chooses the rules of a user.

Of the rules about a place the first one counts. A body that is covered shows its structure and nothing else, but what
rules show; one that is not covered shows everything, but what rules take away.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import translate
from functools import lru_cache

import regex

from brokerapp.engine.policy.broker_headers import CAUSE, EARLIER_CAUSE, SIGNATURE
from brokerapp.errors import RequestRefused
from brokerapp.model.jms.form import JMS_HEADER
from brokerapp.model.jms.properties import CLASH_PREFIX
from console.access.json_paths import parse_path
from console.access.roles import Role, Scope

#: What stands where a value was.
COVER = "••••"
#: Characters left of a value by LAST4.
LAST_CHARACTERS = 4
#: Bytes of a body that rules look through; what is larger is withheld where a rule would have to.
MAX_BODY = 1024 * 1024
MAX_PATTERN = 500
#: Headers that pages and clients need, and that say nothing of what is in a message.
NEVER_MASKED = frozenset(
    {"message-id", "destination", "timestamp", "content-length", "content-type", SIGNATURE, JMS_HEADER}
)
#: Headers that repeat what another one says: a rule about that one masks these.
DERIVED_HEADERS = {EARLIER_CAUSE: CAUSE}


class MaskTarget(StrEnum):
    """Name the part of a message that a rule masks."""

    HEADER = "header"  #: names of headers and properties, with * and ?
    JSON = "json"  #: a path in a JSON body: $.customer.card, $..card, $.lines[*].price
    BODY = "body"  #: a regular expression in a body of text


class MaskAction(StrEnum):
    """Name what a rule does with the values that it finds."""

    REMOVE = "remove"
    REPLACE = "replace"
    LAST4 = "last4"
    SHOW = "show"


@dataclass(frozen=True, slots=True)
class MaskRule:
    """Represent one masking rule; `role` None stands for all roles."""

    role: Role | None
    scope: Scope
    place: MaskTarget
    pattern: str
    action: MaskAction
    replacement: str = COVER

    @staticmethod
    def parse(role: str, scope: str, place: str, pattern: str, action: str, replacement: str = "") -> MaskRule:
        """Return the rule with these texts. Raises RequestRefused, InvalidDestination."""
        for value, kind in ((place, MaskTarget), (action, MaskAction)):
            if value not in set(kind):
                raise RequestRefused(f"{value!r} is not one of {', '.join(kind)}")
        if role and role not in set(Role):
            raise RequestRefused(f"{role!r} is not one of the roles {', '.join(Role)}")
        rule = MaskRule(
            Role(role) if role else None, Scope.parse(scope or ">"), MaskTarget(place), pattern.strip(),
            MaskAction(action), replacement or COVER,
        )  # fmt: skip
        rule.check()
        return rule

    def check(self) -> None:
        """Raise RequestRefused when the pattern is not valid for its target."""
        if len(self.pattern) > MAX_PATTERN:
            raise RequestRefused(f"pattern: Enter at most {MAX_PATTERN} characters.")
        match self.place:
            case MaskTarget.JSON:
                parse_path(self.pattern)
            case MaskTarget.BODY:
                try:
                    regex.compile(self.pattern)
                except (regex.error, OverflowError, RecursionError) as error:
                    raise RequestRefused(f"{self.pattern!r} is not a valid regular expression: {error}") from error
            case MaskTarget.HEADER if not self.pattern or self.action is MaskAction.SHOW:
                raise RequestRefused(
                    "A rule for headers cannot use the action show. All users with permission to browse see headers."
                    if self.pattern
                    else "pattern: Enter a header name, or a pattern such as card*."
                )
        if self.place is MaskTarget.BODY and self.action is not MaskAction.SHOW and not self.pattern:
            raise RequestRefused("pattern: Enter a regular expression.")


def rule_for_header(rules: Iterable[MaskRule], name: str) -> MaskRule | None:
    """Return the first rule that masks this header, if any."""
    if name in NEVER_MASKED:
        return None
    said = {name, DERIVED_HEADERS.get(name, name), name.removeprefix(CLASH_PREFIX)}
    about = (rule for rule in rules if rule.place is MaskTarget.HEADER)
    return next((rule for rule in about if any(map(_named(rule.pattern).match, said))), None)


def masks_header(rule: MaskRule, name: str) -> bool:
    """Return whether the pattern of a rule for headers matches a name."""
    return rule.place is MaskTarget.HEADER and _named(rule.pattern).match(name) is not None


def mask_headers(rules: Sequence[MaskRule], headers: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the masked headers and the names of those that were masked."""
    left, names = {}, []
    for name, value in headers.items():
        rule = rule_for_header(rules, name)
        if rule is None:
            left[name] = value
            continue
        names.append(name.removeprefix(CLASH_PREFIX))
        if rule.action is not MaskAction.REMOVE:
            left[name] = masked_value(rule, value)
    return left, names


def masked_value(rule: MaskRule, text: str) -> str:
    """Return what stands where a rule masked a text."""
    if rule.action is MaskAction.LAST4:
        return COVER + text[-LAST_CHARACTERS:] if len(text) > LAST_CHARACTERS else COVER
    return rule.replacement


@lru_cache(maxsize=1024)
def _named(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern), re.IGNORECASE)
