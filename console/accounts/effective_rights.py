"""Compute the effective permissions of a user, group or role: scopes with sources, pages, destinations.

A role can be looked at before anybody has it, for the scopes that it would be given for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth.models import Group, User
from django.db.models import Q

from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from console.access.masking import reader_role
from console.access.models import Assignment
from console.access.roles import MASKED_ROLES, Permission, Role, RoleGrant, Sees, allows, everything
from console.accounts import users
from console.ui.navigation.command_palette import COMMANDS, PaletteCommand

#: What holders there are.
USER, GROUP, ROLE = KINDS = ("user", "group", "role")

#: The rights that are asked for one destination, in the order in which they weigh.
DESTINATION_PERMISSIONS = (
    Permission.SEE, Permission.BROWSE, Permission.READ, Permission.RESUBMIT, Permission.BULK,
    Permission.EDIT, Permission.SEND, Permission.PAUSE, Permission.REMOVE, Permission.CREATE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PermissionHolder:
    """Represent a user, group or role whose permissions are shown."""

    kind: str  #: one of KINDS
    name: str
    sources: tuple[tuple[RoleGrant, str], ...]  #: what it has, and where that comes from
    scopes: tuple[str, ...] = ()  #: of a role that nobody needs to have

    @property
    def grants(self) -> tuple[RoleGrant, ...]:
        """Return the grants of the holder, without their sources."""
        return tuple(grant for grant, _ in self.sources)

    @property
    def description(self) -> str:
        """Return the holder in words: `user sam`, or `role support for orders.>`."""
        return f"{self.kind} {self.name}" + (f" for {', '.join(self.scopes)}" if self.scopes else "")

    @property
    def sees(self) -> Sees:
        """Return a predicate: which destinations the holder can see."""
        grants = [grant for grant in self.grants if grant.allows(Permission.SEE)]
        is_whole = any(grant.is_everywhere for grant in grants)
        return everything if is_whole else lambda destination: allows(grants, Permission.SEE, destination)


def find(kind: str, name: str, scopes: Iterable[str] = ()) -> PermissionHolder:
    """Return the holder of this kind and name. Raises RequestRefused, InvalidDestination."""
    if kind == USER:
        return user_holder(_existing(User, "username", name))
    if kind == GROUP:
        group = _existing(Group, "name", name)
        return PermissionHolder(
            kind, name, tuple((each.grant, f"role {each.role}") for each in group.assignments.all())
        )
    if kind == ROLE:
        assignment = users.build_assignment(name, scopes, ())
        return PermissionHolder(kind, name, ((assignment.grant, f"role {name}"),), tuple(assignment.scopes))
    raise RequestRefused(f"Unknown kind {kind!r}. Use one of {', '.join(KINDS)}.")


def _existing(model: type[User | Group], field: str, name: str) -> User | Group:
    found = model.objects.filter(**{field: name}).first()
    if found is None:
        raise RequestRefused(f"{model.__name__} {name!r} not found.")
    return found


def user_holder(user: User) -> PermissionHolder:
    """Return a user with their own grants and those of their groups; a disabled user has none."""
    sources = [(RoleGrant(Role.ADMIN), "superuser")] if user.is_superuser else []
    found = Assignment.objects.filter(Q(user=user) | Q(group__user=user)).select_related("group")
    sources += [(each.grant, _source(each)) for each in found]
    return PermissionHolder(USER, user.get_username(), tuple(sources if user.is_active else ()))


def _source(given: Assignment) -> str:
    if given.group is None:
        return f"role {given.role}"
    return f"group {given.group}" if given.group.name == given.role else f"{given.role} by group {given.group}"


def scopes_by_permission(holder: PermissionHolder) -> list[tuple[Permission, list[tuple[str, str]]]]:
    """Yield each permission with its scopes and their sources: `("everywhere", "superuser, group admin")`."""
    return [(permission, _scopes_with_sources(holder, permission)) for permission in Permission]


def _scopes_with_sources(holder: PermissionHolder, permission: Permission) -> list[tuple[str, str]]:
    """Return the scopes of a permission, each once with all sources."""
    places: dict[str, list[str]] = {}
    for grant, source in holder.sources:
        if grant.allows(permission):
            by = f"{source} (masked)" if permission is Permission.READ and grant.role in MASKED_ROLES else source
            places.setdefault(", ".join(map(str, grant.scopes)) or "everywhere", []).append(by)
    return [(where, ", ".join(each)) for where, each in places.items()]


def page_permissions(holder: PermissionHolder) -> list[tuple[PaletteCommand, bool]]:
    """Return all pages of the command palette, each with whether the holder can open it."""
    return [(command, allows(holder.grants, command.permission)) for command in COMMANDS]


def destination_permissions(holder: PermissionHolder, destination: Destination) -> list[tuple[Permission, str]]:
    """Return each destination permission with `yes`, `masked` or `no` for one destination."""
    return [
        (permission, destination_permission(holder, permission, destination)) for permission in DESTINATION_PERMISSIONS
    ]


def destination_permission(holder: PermissionHolder, permission: Permission, destination: Destination) -> str:
    """Return `yes`, `masked` or `no` for one permission on a destination."""
    if not allows(holder.grants, permission, destination):
        return "no"
    return (
        "masked" if permission is Permission.READ and reader_role(holder.grants, destination) in MASKED_ROLES else "yes"
    )
