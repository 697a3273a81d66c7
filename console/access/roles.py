"""Define roles, permissions, the table that joins them, and scopes. Pure; `permissions` applies it to users."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from brokerapp.engine.routing.destination_trie import covers, overlap
from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import ANY_REST, NAMED_KINDS, Destination, DestinationKind, check_name

#: Whether somebody may know of a destination.
Sees = Callable[[Destination], bool]


def everything(_destination: object) -> bool:
    """Hide nothing: the filter of users who may see all destinations."""
    return True


class Role(StrEnum):
    """Name a bundle of permissions; a superuser is an admin."""

    VIEWER = "viewer"
    SUPPORT = "support"
    ANALYST = "analyst"
    OPERATOR = "operator"
    ADMIN = "admin"
    CLIENT = "client"  #: programs, which send and consume over STOMP
    MONITOR = "monitor"  #: machines, which read numbers


class Permission(StrEnum):
    """Name a permission; the value completes "Requires permission: ..."."""

    SEE = "view destinations and metrics"
    BROWSE = "browse messages"
    READ = "read message bodies"
    RESUBMIT = "resubmit messages"
    BULK = "resubmit, move and copy messages in bulk"
    EDIT = "edit and resubmit messages"
    SEND = "send test messages"
    REMOVE = "delete messages and purge queues"
    PAUSE = "pause and resume queues"
    CLOSE = "close connections and subscriptions"
    CREATE = "create and delete destinations"
    DRAFT = "create routing drafts"
    ROUTE = "apply routing changes"
    BRIDGE = "manage network connectors"
    NODES = "drain and rebalance nodes"
    SHARDS = "manage shards of the store"
    BACKUP = "make and download backups"
    CHECK = "check the installation"
    RECORD = "configure tracing"
    ANALYSE = "run analyses"
    SQL = "write SQL queries"
    SCHEDULE = "create and schedule reports"
    ALERT = "manage alert rules"
    METRICS = "read monitoring endpoints"
    USERS = "manage users, roles and masking"
    AUDIT = "read the audit log"
    DEMO = "start the demo"


_ADMIN = frozenset({Role.ADMIN})
_OPERATORS = _ADMIN | {Role.OPERATOR}
_SUPPORT = _OPERATORS | {Role.SUPPORT}
_VIEWERS = _SUPPORT | {Role.ANALYST, Role.VIEWER}

ROLES_BY_PERMISSION: dict[Permission, frozenset[Role]] = {
    Permission.SEE: _VIEWERS,
    Permission.BROWSE: _SUPPORT,
    Permission.READ: _SUPPORT,
    Permission.RESUBMIT: _SUPPORT,
    Permission.BULK: _OPERATORS,
    Permission.EDIT: _OPERATORS,
    Permission.SEND: _OPERATORS,
    Permission.REMOVE: _OPERATORS,
    Permission.PAUSE: _OPERATORS,
    Permission.CLOSE: _OPERATORS,
    Permission.CREATE: _OPERATORS,
    Permission.DRAFT: _SUPPORT,
    Permission.ROUTE: _ADMIN,
    Permission.BRIDGE: _ADMIN,
    Permission.NODES: _ADMIN,
    Permission.SHARDS: _ADMIN,
    Permission.BACKUP: _ADMIN,
    Permission.CHECK: _ADMIN,
    Permission.RECORD: _ADMIN,
    Permission.ANALYSE: _SUPPORT | {Role.ANALYST},
    Permission.SQL: _OPERATORS | {Role.ANALYST},
    Permission.SCHEDULE: _OPERATORS | {Role.ANALYST},
    Permission.ALERT: _OPERATORS,
    Permission.METRICS: _OPERATORS | {Role.MONITOR},
    Permission.USERS: _ADMIN,
    Permission.AUDIT: _ADMIN,
    Permission.DEMO: _ADMIN,
}

#: What may be given to somebody in a role beyond what all in the role have.
EXTRAS: dict[Role, frozenset[Permission]] = {
    Role.OPERATOR: frozenset({Permission.ROUTE, Permission.RECORD, Permission.BRIDGE, Permission.NODES}),
    Role.SUPPORT: frozenset({Permission.BULK}),
}

#: Roles that are for everything: an admin could lift a scope, and what programs may do is the broker's own to decide.
UNSCOPED_ROLES = frozenset({Role.ADMIN, Role.CLIENT, Role.MONITOR})

#: What tells of a queue and changes nothing: by whatever name it is called, the queue is meant.
READ_PERMISSIONS = frozenset({Permission.SEE, Permission.BROWSE, Permission.READ})

#: Roles that read bodies only as far as masking shows them.
MASKED_ROLES = frozenset({Role.SUPPORT})


@dataclass(frozen=True, slots=True)
class Scope:
    """Match destinations by a pattern with the broker's wildcards; without a kind both queues and topics."""

    pattern: str
    kind: DestinationKind | None = None

    @staticmethod
    def parse(text: str) -> Scope:
        """Read `orders.>`, `queue://orders.>` or `topic://orders.>`. Raises InvalidDestination."""
        for kind in NAMED_KINDS:
            prefix = f"{kind}://"
            if text.strip().startswith(prefix):
                return Scope(_checked(text.strip().removeprefix(prefix)), kind)
        return Scope(_checked(text.strip()))

    def __str__(self) -> str:
        return f"{self.kind}://{self.pattern}" if self.kind else self.pattern

    @property
    def is_everything(self) -> bool:
        """Return whether the scope names all queues and topics."""
        return self.kind is None and self.pattern == ANY_REST

    @property
    def destinations(self) -> tuple[Destination, ...]:
        """Return the scope as one pattern for each kind."""
        return tuple(Destination(kind, self.pattern) for kind in ((self.kind,) if self.kind else NAMED_KINDS))

    def contains(self, destination: Destination) -> bool:
        """Return whether the scope covers the destination, or all that a pattern names."""
        return self._is_of(destination) and covers(self.pattern, destination.physical.name)

    def overlaps(self, destination: Destination) -> bool:
        """Return whether the scope covers the destination, or some that a pattern names."""
        return self._is_of(destination) and overlap(self.pattern, destination.physical.name)

    def _is_of(self, destination: Destination) -> bool:
        return destination.physical.kind in ((self.kind,) if self.kind else NAMED_KINDS)


def _checked(pattern: str) -> str:
    check_name(pattern)
    if "://" in pattern:
        raise InvalidDestination(pattern, "A scope is a pattern such as orders.>, queue://orders.> or topic://>.")
    return pattern


@dataclass(frozen=True, slots=True)
class TokenLimit:
    """Limit the permissions of a token's user to these, in these scopes (none: all scopes of the user)."""

    permissions: frozenset[Permission]
    scopes: tuple[Scope, ...] = ()


@dataclass(frozen=True, slots=True)
class RoleGrant:
    """Represent a role with its scopes (none: all destinations) and additional permissions."""

    role: Role
    scopes: tuple[Scope, ...] = ()
    extras: frozenset[Permission] = frozenset()
    limit: TokenLimit | None = None

    @property
    def is_everywhere(self) -> bool:
        """Return whether the grant holds for all destinations."""
        return not self.scopes and (self.limit is None or not self.limit.scopes)

    @property
    def effective_scopes(self) -> tuple[Scope, ...]:
        """Return the scopes of the token if it has any (they lie within the grant's), else the grant's."""
        return (self.limit.scopes if self.limit is not None else ()) or self.scopes

    def allows(self, permission: Permission, destination: Destination | None = None) -> bool:
        """Return whether any of the grants includes the permission."""
        if self.role not in ROLES_BY_PERMISSION[permission] and permission not in self.extras:
            return False
        places = (
            ()
            if destination is None
            else (destination,)
            if permission in READ_PERMISSIONS
            else affected_destinations(destination)
        )
        if self.limit is not None and not (permission in self.limit.permissions and _within(self.limit.scopes, places)):
            return False
        return _within(self.scopes, places)

    def overlaps(self, destination: Destination) -> bool:
        """Return whether the grant covers some destination of the pattern."""
        limits = self.limit.scopes if self.limit is not None else ()
        return all(
            not scopes or any(scope.overlaps(destination) for scope in scopes) for scopes in (self.scopes, limits)
        )

    @staticmethod
    def parse(role: str, scopes: Iterable[str], extras: Iterable[str]) -> RoleGrant:
        """Return the grant of these texts; see `Assignment`. Raises ValueError, InvalidDestination."""
        permissions = frozenset(Permission[name.upper()] for name in extras)
        return RoleGrant(Role(role), tuple(map(Scope.parse, scopes)), permissions & EXTRAS.get(Role(role), frozenset()))


def affected_destinations(destination: Destination) -> tuple[Destination, ...]:
    """Return the destinations that an action affects: for a fully qualified name also its address.

    Who calls a new queue by one binds it there: it gets what is sent to the topic of that name, or a share of what is
    sent to the queue.
    """
    queue = destination.physical
    if not destination.address or destination.address == queue.name:
        return (queue,)
    return (queue, *(Destination(kind, destination.address) for kind in NAMED_KINDS))


def _within(scopes: tuple[Scope, ...], places: tuple[Destination, ...]) -> bool:
    return not scopes or all(any(scope.contains(place) for scope in scopes) for place in places)


def allows(grants: Iterable[RoleGrant], permission: Permission, destination: Destination | None = None) -> bool:
    """Return whether one of the grants has the right."""
    return any(grant.allows(permission, destination) for grant in grants)


def permission_message(permission: Permission, destination: Any = None, held: str = "") -> str:
    """Return the sentence that names a missing permission, and where the user has it (`held`)."""
    roles = [role for role in Role if role in ROLES_BY_PERMISSION[permission]]
    named = f"role {roles[0]}" if len(roles) == 1 else f"roles {', '.join(roles[:-1])} and {roles[-1]}"
    where = f" for {destination}" if destination is not None else ""
    instead = f" You have it for {held}." if held else ""
    others = " and ".join(role for role in Role if permission in EXTRAS.get(role, ()))
    added = f", and can be added to the role {others}" if others else ""
    return f"Requires permission: {permission}{where}. Granted to the {named}{added}.{instead}"


def token_permission_message(permission: Permission, destination: Any, held: str) -> str:
    """Return the sentence that names a permission which the token does not include, or only for `held`."""
    if not held:
        return f"This token does not include the permission {permission.name.lower()} ({permission})."
    beyond = f", not for {destination}" if destination is not None else ""
    return f"This token includes the permission {permission.name.lower()} only for {held}{beyond}."
