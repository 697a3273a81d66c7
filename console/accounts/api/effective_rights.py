"""Serve the effective permissions of users, groups and roles."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest
from ninja import Router, Schema

from brokerapp.model.destination import Destination
from console.access.roles import Permission
from console.accounts import effective_rights
from console.api.common.operations import operation

router = Router(tags=["people"])


class PermissionPlaceOut(Schema):
    """Describe where a permission holds (`everywhere`, or patterns) and what grants it."""

    where: str
    by: str


class EffectivePermissionOut(Schema):
    """Describe a permission with its scopes; none where it is missing."""

    verb: str
    places: list[PermissionPlaceOut]


class EffectivePermissionsOut(Schema):
    """Describe all permissions, and for a requested destination each as `yes`, `masked` or `no`."""

    of: str
    rights: list[EffectivePermissionOut]
    destination: dict[str, Literal["yes", "masked", "no"]] | None


@operation(router, "GET", "/{kind}/{name:name}", Permission.USERS, response=EffectivePermissionsOut)
def get_effective_rights(request: HttpRequest, kind: str, name: str, scopes: str = "", destination: str = "") -> Any:
    """Get the effective permissions of a user, a group, or a role for some scopes."""
    holder = effective_rights.find(kind, name, scopes.split())
    rights = [
        {"verb": permission.name.lower(), "places": [{"where": where, "by": by} for where, by in places]}
        for permission, places in effective_rights.scopes_by_permission(holder)
    ]
    cells = effective_rights.destination_permissions(holder, Destination.parse(destination)) if destination else None
    return {
        "of": holder.description,
        "rights": rights,
        "destination": {permission.name.lower(): cell for permission, cell in cells} if cells is not None else None,
    }
