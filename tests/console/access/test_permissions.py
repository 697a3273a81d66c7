"""Test what roles, scopes and extras allow, and what pages show of it."""

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.urls import reverse

from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import Destination
from console.access.models import Assignment
from console.access.permissions import grants_of, has_permission, visible
from console.access.roles import EXTRAS, ROLES_BY_PERMISSION, UNSCOPED_ROLES, Permission, Role, RoleGrant, Scope
from tests.console.conftest import make_user

ORDERS, BILLS = Destination.queue("orders.eu"), Destination.queue("bills.eu")


def rights(role: Role) -> set[Permission]:
    return {permission for permission, roles in ROLES_BY_PERMISSION.items() if role in roles}


def test_a_viewer_sees_and_nothing_else():
    assert rights(Role.VIEWER) == {Permission.SEE}


def test_support_browses_resubmits_and_drafts_and_changes_nothing_else():
    expected = {
        Permission.SEE,
        Permission.BROWSE,
        Permission.READ,
        Permission.RESUBMIT,
        Permission.DRAFT,
        Permission.ANALYSE,
    }
    assert rights(Role.SUPPORT) == expected


def test_an_analyst_reads_no_messages():
    assert rights(Role.ANALYST) == {Permission.SEE, Permission.ANALYSE, Permission.SQL, Permission.SCHEDULE}


def test_an_operator_does_all_but_what_is_an_admins():
    assert set(Permission) - rights(Role.OPERATOR) == {
        Permission.ROUTE,
        Permission.BRIDGE,
        Permission.NODES,
        Permission.SHARDS,
        Permission.BACKUP,
        Permission.CHECK,
        Permission.RECORD,
        Permission.USERS,
        Permission.AUDIT,
        Permission.DEMO,
    }


def test_an_admin_may_do_everything_and_a_program_nothing_here():
    assert rights(Role.ADMIN) == set(Permission)
    assert rights(Role.CLIENT) == set()
    assert rights(Role.MONITOR) == {Permission.METRICS}


@pytest.mark.parametrize(
    ("scope", "destination", "holds"),
    [
        ("orders.>", "queue://orders.eu", True),
        ("orders.>", "topic://orders.eu", True),
        ("orders.>", "queue://orders", True),
        ("orders.*", "queue://orders.eu.north", False),
        ("queue://orders.>", "topic://orders.eu", False),
        ("topic://orders.>", "topic://orders.eu", True),
        ("orders.>", "queue://orders.*", True),
        ("orders.eu", "queue://orders.*", False),
        ("orders.*", "queue://orders.>", False),
        ("orders.>", "queue://T::orders.eu", True),
        (">", "temp-queue://x", False),
    ],
)
def test_a_scope_holds_what_its_pattern_covers(scope, destination, holds):
    assert Scope.parse(scope).contains(Destination.parse(destination)) is holds


@pytest.mark.parametrize("text", ["", " ", "queue://", "temp-queue://x", "a\nb"])
def test_a_scope_that_names_nothing_is_refused(text):
    with pytest.raises(InvalidDestination):
        Scope.parse(text)


def test_a_role_in_a_scope_is_for_the_scope(db):
    user = make_user("support", "orders.>")
    assert has_permission(user, Permission.BROWSE)
    assert has_permission(user, Permission.BROWSE, ORDERS)
    assert not has_permission(user, Permission.BROWSE, BILLS)
    assert [each for each in (ORDERS, BILLS) if visible(user)(each)] == [ORDERS]


def test_roles_add_up_each_with_its_scopes(db):
    user = make_user("viewer")
    Assignment.objects.create(user=user, role="operator", scopes=["bills.>"])
    assert all(map(visible(user), (ORDERS, BILLS)))
    assert has_permission(user, Permission.REMOVE, BILLS)
    assert not has_permission(user, Permission.REMOVE, ORDERS)


def test_a_groups_role_is_its_members(db):
    user, team = make_user(""), Group.objects.create(name="billing")
    Assignment.objects.create(group=team, role="support", scopes=["bills.>"])
    user.groups.add(team)
    assert has_permission(user, Permission.BROWSE, BILLS)
    assert not has_permission(user, Permission.BROWSE, ORDERS)


def test_the_groups_that_there_were_give_their_roles_everywhere(db):
    for role in Role:
        user = User.objects.create_user(f"in-{role}")
        user.groups.add(Group.objects.get(name=role))
        assert grants_of(user) == (RoleGrant(role),)


def test_an_extra_is_given_only_where_the_role_can_have_it():
    assert RoleGrant.parse("operator", [], ["route"]).allows(Permission.ROUTE)
    assert not RoleGrant.parse("viewer", [], ["route"]).allows(Permission.ROUTE)
    assert not set(EXTRAS) & UNSCOPED_ROLES


def test_nobody_has_rights_who_is_closed_or_not_logged_in(db):
    user = make_user("admin")
    user.is_active = False
    assert not has_permission(user, Permission.SEE)
    assert not has_permission(AnonymousUser(), Permission.SEE)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.SUPPORT, Role.OPERATOR])
def test_a_page_offers_what_the_role_may_do_and_names_the_right_that_is_missing(
    role, browser_of, console, wait_for_mirror
):
    queue = {"name": f"offered.{role}"}
    console.send(f"/queue/offered.{role}", "x")
    wait_for_mirror(f"offered.{role}", 1)
    text = browser_of(role).get(reverse("queue", kwargs=queue)).content.decode()
    for permission, page in (
        (Permission.REMOVE, "purge"),
        (Permission.BROWSE, "messages"),
        (Permission.PAUSE, "pause-queue"),
    ):
        has = role in ROLES_BY_PERMISSION[permission]
        assert (f'"{reverse(page, kwargs=queue)}"' in text) is has
        assert (f"Requires permission: {permission}" in text) is not has
