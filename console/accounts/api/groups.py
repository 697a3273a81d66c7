"""Serve operations on groups, their roles and members."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router, Schema, Status

from console.access.models import Assignment
from console.access.roles import Permission
from console.accounts import users
from console.accounts.api.users import AssignmentIn, AssignmentOut
from console.api.common.inputs import RequestBody
from console.api.common.operations import operation
from console.audit import trail

router = Router(tags=["people"])


class UserGroupOut(Schema):
    """Describe a group with its roles and number of members."""

    id: int
    name: str
    assignments: list[AssignmentOut]
    members: list[int]

    @staticmethod
    def resolve_members(group: Group) -> list[int]:
        """Return the ids of the members, sorted."""
        return sorted(each.pk for each in group.user_set.all())


class GroupIn(RequestBody):
    """Describe a group to create."""

    name: str


class GroupMembershipIn(RequestBody):
    """Describe whether a user is a member of the group."""

    member: bool


@operation(router, "GET", "", Permission.USERS, response=list[UserGroupOut])
def list_user_groups(request: HttpRequest) -> Any:
    """List groups, sorted by name."""
    return Group.objects.order_by("name").prefetch_related("assignments", "user_set")


@operation(router, "POST", "", Permission.USERS, response={201: UserGroupOut})
def create_group(request: HttpRequest, wanted: GroupIn) -> Any:
    """Create a group without roles and members."""
    with trail.recording(request, "create group", f"group {wanted.name}"):
        made = users.create_group(wanted.name)
    return Status(201, made)


@operation(router, "DELETE", "/{int:group_id}", Permission.USERS, response={204: None})
def delete_group(request: HttpRequest, group_id: int) -> Any:
    """Delete a group; its members lose its roles."""
    found = get_object_or_404(Group, pk=group_id)
    with users.recording(request, "delete group", found):
        users.delete_group(found)
    return Status(204, None)


@operation(router, "POST", "/{int:group_id}/assignments", Permission.USERS, response={201: UserGroupOut})
def assign_group_role(request: HttpRequest, group_id: int, wanted: AssignmentIn) -> Any:
    """Assign a role to a group."""
    found = get_object_or_404(Group, pk=group_id)
    with users.recording(request, "give role", found):
        users.assign_role(found, users.build_assignment(wanted.role, wanted.scopes, wanted.extras))
    return Status(201, found)


@operation(router, "DELETE", "/{int:group_id}/assignments/{int:assignment_id}", Permission.USERS, response=UserGroupOut)
def withdraw_group_role(request: HttpRequest, group_id: int, assignment_id: int) -> Any:
    """Remove a role from a group."""
    found = get_object_or_404(Group, pk=group_id)
    assignment = get_object_or_404(Assignment, pk=assignment_id, group=found)
    with users.recording(request, "take role", found):
        users.remove_role(assignment)
    return found


@operation(router, "PUT", "/{int:group_id}/members/{int:user_id}", Permission.USERS, response=GroupMembershipIn)
def set_membership(request: HttpRequest, group_id: int, user_id: int, wanted: GroupMembershipIn) -> Any:
    """Add a user to a group, or remove them."""
    found, user = get_object_or_404(Group, pk=group_id), get_object_or_404(User, pk=user_id)
    others = Group.objects.filter(user=user).exclude(pk=found.pk)
    with users.recording(request, "set groups", user):
        users.set_groups(user, [*others, *([found] if wanted.member else [])])
    return wanted
