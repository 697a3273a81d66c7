"""Test API tokens: shown once, limited to their permissions and lifetime."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from console.access.permissions import Permission, has_permission, visible
from console.accounts import api_tokens
from console.accounts.models import ApiToken
from console.audit.models import AuditEntry
from tests.console.conftest import make_user


def token_of(role: str, *permissions: str, scopes: tuple[str, ...] = (), days: int = 1) -> str:
    """The text of a new token of a new user in this role."""
    user = make_user(role, name=f"{role}-{ApiToken.objects.count()}")
    return api_tokens.create_token(user, "test", permissions, scopes, days, "test")[1]


def caller(text: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {text}"})


def test_a_token_is_made_on_its_page_shown_once_and_kept_as_a_digest(browser_of):
    browser = browser_of("operator")
    form = {"name": "nightly", "verbs": ["see", "browse"], "scopes": "orders.>", "days": "30"}
    response = browser.post(reverse("tokens"), form)
    text = response.context["text"]
    assert text in response.content.decode()
    assert "no-store" in response["Cache-Control"]
    assert text not in browser.get(reverse("tokens")).content.decode()
    token = ApiToken.objects.get()
    assert token.digest not in text
    assert text not in str(token.__dict__)
    assert caller(text).get("/api/v1/me").json() == {
        "name": "operator", "roles": ["operator"], "verbs": ["see", "browse"],
    }  # fmt: skip
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.outcome, text in str(entry.after)) == ("make token", "done", False)


def test_a_token_opens_no_more_than_it_says(db):
    user = api_tokens.authenticate_token(token_of("operator", "see", "browse", scopes=("orders.>",)))
    inside, outside = Destination.queue("orders.eu"), Destination.queue("other")
    assert has_permission(user, Permission.BROWSE, inside)
    assert not has_permission(user, Permission.BROWSE, outside)
    assert not has_permission(user, Permission.REMOVE, inside)
    assert [visible(user)(each) for each in (inside, outside)] == [True, False]


def test_a_token_opens_no_more_than_its_user_may(db):
    text = token_of("operator", "remove")
    ApiToken.objects.get().user.assignments.all().delete()
    assert not has_permission(api_tokens.authenticate_token(text), Permission.REMOVE)


@pytest.mark.parametrize("end", ["expired", "revoked", "closed account", "another text"])
def test_a_token_that_ended_opens_nothing(end, db):
    text = token_of("viewer", "see")
    assert caller(text).get("/api/v1/me").status_code == 200
    token = ApiToken.objects.get()
    match end:
        case "expired":
            ApiToken.objects.update(expires=timezone.now() - timedelta(seconds=1))
        case "revoked":
            api_tokens.revoke_token(token)
        case "closed account":
            token.user.is_active = False
            token.user.save()
        case "another text":
            text += "x"
    assert caller(text).get("/api/v1/me").status_code == 401


def test_the_last_use_is_noted(db):
    caller(token_of("viewer", "see")).get("/api/v1/me")
    token = ApiToken.objects.get()
    assert (token.used is not None, token.used_from) == (True, "127.0.0.1")


@pytest.mark.parametrize(
    ("name", "permissions", "days", "named"),
    [
        ("", ["see"], 1, "name"),
        ("x", ["see"], 0, "days"),
        ("x", ["see"], 400, "days"),
        ("x", ["explode"], 1, "explode"),
        ("x", ["remove"], 1, "does not have the permission remove"),
        ("x", [], 1, "verbs"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused_by_the_input(name, permissions, days, named, db):
    with pytest.raises(RequestRefused, match=named):
        api_tokens.create_token(make_user("viewer"), name, permissions, (), days, "test")


def test_one_makes_and_revokes_ones_own_and_an_admin_everybodys(browser_of):
    viewer, other, admin = browser_of("viewer"), browser_of("support"), browser_of("admin")
    form = {"name": "mine", "verbs": ["see"], "days": "7"}
    viewer.post(reverse("tokens"), form)
    token = ApiToken.objects.get()
    assert "mine" not in other.get(reverse("tokens")).content.decode()
    assert other.post(reverse("revoke-token", args=[token.pk])).status_code == 403
    assert other.post(reverse("tokens"), form | {"user": "viewer"}).status_code == 403
    assert "mine" in admin.get(reverse("tokens")).content.decode()
    assert admin.post(reverse("tokens"), form | {"user": "viewer"}).context["made"].user.username == "viewer"
    assert admin.post(reverse("revoke-token", args=[token.pk])).status_code == 302
    token.refresh_from_db()
    assert token.revoked


def test_a_token_makes_no_token(db):
    response = caller(token_of("operator", "see")).post(
        "/api/v1/tokens", {"name": "child", "verbs": ["see"]}, content_type="application/json"
    )
    assert response.status_code == 403
    assert ApiToken.objects.count() == 1
