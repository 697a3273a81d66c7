"""Test how an admin manages users, groups and roles."""

import re

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from console.access.models import Assignment
from console.access.permissions import Permission, has_permission
from console.audit.models import AuditEntry
from tests.console.conftest import make_user


def created(admin: Client, **typed: str):
    typed = {"username": "ada", "role": "support", "scopes": "orders.>", **typed}
    return admin.post(reverse("new-user"), typed, follow=True)


def test_a_user_is_made_with_a_role_in_a_scope_and_a_password_that_is_shown_once(admin):
    response = created(admin, way="password")
    text = response.content.decode()
    assert response.redirect_chain[-1][1] == 302  # loading the page again makes nothing anew
    password = re.search(r'id="secret">([^<]+)<', text)[1]
    user = User.objects.get(username="ada")
    assert user.check_password(password)
    assert [(each.role, each.scopes) for each in user.assignments.all()] == [("support", ["orders.>"])]
    assert password not in admin.get(reverse("user", kwargs={"user_id": user.pk})).content.decode()
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.object, entry.after["roles"]) == ("create user", "ada", ["support for orders.>"])
    assert password not in str(entry.after)


def test_an_invited_user_sets_a_password_with_a_link_that_works_once(admin):
    text = created(admin, way="link").content.decode()
    assert "Invitation link (shown once)" in text
    link = re.search(r'id="secret">(http[^<]+)<', text)[1]
    guest = Client()
    page = guest.get(link, follow=True)
    form = page.request["PATH_INFO"]
    answer = guest.post(form, {"new_password1": "a long password", "new_password2": "a long password"})
    assert answer.url == reverse("overview"), "whoever has just set it need not type it again"
    assert guest.get(reverse("account")).status_code == 200
    assert User.objects.get(username="ada").check_password("a long password")
    assert "Link not valid" in Client().get(link, follow=True).content.decode()
    assert [each.action for each in AuditEntry.objects.all()[:2]] == ["log in", "set password"]
    again = act(admin, User.objects.get(username="ada"), "password", way="link").content.decode()
    assert "Password reset link (shown once)" in " ".join(again.split())


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ({"username": ""}, "blank"),
        ({"username": "admin"}, "already"),
        ({"username": "a b"}, "valid username"),
        ({"role": "king"}, "not one of the roles"),
        ({"scopes": "temp-queue://x"}, "A scope is a pattern"),
        ({"role": "admin"}, "cannot be limited to a scope"),
        ({"extras": "route"}, "permission route cannot be added"),
        ({"scopes": " ".join(f"q{number}" for number in range(51))}, "at most 50"),
    ],
)
def test_a_user_that_cannot_be_is_refused_with_the_reason(typed, problem, admin):
    response = created(admin, **typed)
    assert response.status_code == 400
    assert problem in response.content.decode()
    assert User.objects.count() == 1
    assert AuditEntry.objects.get().outcome == "refused"


def act(admin: Client, user: User, action: str, **typed):
    return admin.post(reverse("change-user", kwargs={"user_id": user.pk, "action": action}), typed, follow=True)


def test_a_closed_account_is_out_at_once_and_comes_back(admin, console_without_store):
    user, theirs = make_user("viewer"), Client()
    theirs.force_login(user)
    assert theirs.get(reverse("queues")).status_code == 200
    act(admin, user, "close")
    assert theirs.get(reverse("queues")).status_code == 302
    act(admin, user, "open")
    user.refresh_from_db()
    assert user.is_active
    assert [(entry.before["active"], entry.after["active"]) for entry in AuditEntry.objects.all()] == [
        (False, True),
        (True, False),
    ]


def test_a_new_password_ends_sessions(admin, console_without_store):
    user, theirs = make_user("viewer"), Client()
    theirs.force_login(user)
    assert 'id="secret"' in act(admin, user, "password", way="password").content.decode()
    assert theirs.get(reverse("queues")).status_code == 302


def test_a_role_is_given_and_taken_with_effect_at_once(admin):
    user = make_user("viewer")
    given = {"role": "operator", "scopes": "queue://orders.>\ntopic://x", "extras": "route"}
    admin.post(reverse("role-grant", kwargs={"holder_id": user.pk}), given)
    assert has_permission(User.objects.get(pk=user.pk), Permission.ROUTE)
    admin.post(reverse("role-revoke", kwargs={"assignment_id": user.assignments.last().pk}))
    assert not has_permission(User.objects.get(pk=user.pk), Permission.ROUTE)
    taken, was_given = AuditEntry.objects.all()
    assert was_given.after["roles"] == [
        "viewer",
        "operator for queue://orders.>, topic://x, with permission to apply routing changes",
    ]
    assert taken.after["roles"] == ["viewer"]


def test_a_group_gives_its_members_its_roles_until_it_is_deleted(admin):
    user = make_user("")
    admin.post(reverse("groups"), {"name": "billing"})
    team = Group.objects.get(name="billing")
    admin.post(reverse("group-role-grant", kwargs={"holder_id": team.pk}), {"role": "support", "scopes": "bills.>"})
    act(admin, user, "groups", groups=[team.pk])
    assert has_permission(User.objects.get(pk=user.pk), Permission.BROWSE)
    assert "support for bills.&gt;" in admin.get(reverse("users")).content.decode()
    admin.post(reverse("delete-group", kwargs={"group_id": team.pk}))
    assert not has_permission(User.objects.get(pk=user.pk), Permission.BROWSE)


def test_the_last_admin_stays(admin):
    user = User.objects.get(username="admin")
    act(admin, user, "close")
    admin.post(reverse("role-revoke", kwargs={"assignment_id": user.assignments.get().pk}))
    user.refresh_from_db()
    assert user.is_active
    assert user.assignments.count() == 1
    assert {(entry.outcome, entry.detail[:26]) for entry in AuditEntry.objects.all()} == {
        ("refused", "Cannot remove the last adm")
    }


def test_an_admin_who_is_not_the_last_one_can_go(admin):
    other = make_user("admin", name="other")
    act(admin, other, "close")
    other.refresh_from_db()
    assert not other.is_active


def test_a_group_that_holds_the_last_admin_stays(admin):
    user = User.objects.get(username="admin")
    team = Group.objects.get(name="admin")
    user.groups.add(team)
    user.assignments.all().delete()
    admin.post(reverse("delete-group", kwargs={"group_id": team.pk}))
    act(admin, user, "groups")
    assert user.groups.get() == team


def test_what_somebody_may_do_is_told_for_a_destination(admin):
    user = make_user("support", "orders.>")
    url = reverse("user", kwargs={"user_id": user.pk})
    for asked, *expected in (("queue://orders.eu", "yes", "masked"), ("queue://bills", "no", "no")):
        answers = {
            permission: answer for permission, _, answer in admin.get(url, {"destination": asked}).context["effective"]
        }
        assert [answers[Permission.BROWSE], answers[Permission.READ]] == expected
    assert admin.get(url, {"destination": "queue://"}).context["wrong"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["admin", "ada", "bob"]),
        ("?q=AD", ["admin", "ada"]),
        ("?state=closed", ["bob"]),
        ("?role=support", ["ada"]),
        ("?role=admin", ["admin"]),
    ],
)
def test_users_are_listed_and_filtered(query, expected, admin):
    make_user("support", name="ada")
    make_user("viewer", name="bob")
    User.objects.filter(username="bob").update(is_active=False)
    assert {user.username for user, _ in admin.get(reverse("users") + query).context["rows"]} == set(expected)


@pytest.mark.parametrize("page", ["users", "new-user", "groups", "roles", "masking", "new-masking-rule"])
def test_every_page_of_the_section_is_shown(page, admin):
    Assignment.objects.create(user=make_user("viewer"), role="support", scopes=["orders.>"], extras=["bulk"])
    assert admin.get(reverse(page)).status_code == 200
