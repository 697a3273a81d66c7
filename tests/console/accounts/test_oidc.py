"""Test single sign-on against a real OpenID Connect provider: a server with signed tokens, keys and codes."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from allauth.socialaccount.models import SocialAccount
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from brokerapp.errors import ConfigurationRefused
from console.access.permissions import Permission, has_permission
from console.access.roles import Role
from console.accounts.auth_settings import PROVIDER, AuthSettings
from console.audit.models import AuditEntry
from tests.console.conftest import make_user


class Provider(ThreadingHTTPServer):
    """A provider: who logs in, and what it says of them, the test decides."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.reset()

    def reset(self) -> None:
        self.claims = {"sub": "1", "preferred_username": "ada", "groups": ["ops"]}
        self.told = None
        self.sign_with, self.header, self.lies = self.key, {"kid": "k", "alg": "RS256"}, {}
        self.codes: dict[str, dict[str, str]] = {}

    def authorize(self, location: str) -> dict[str, str]:
        """What the browser brings back after the user agreed."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        assert asked["client_id"] == "console"
        code = secrets.token_hex(8)
        self.codes[code] = asked
        return {"code": code, "state": asked["state"]}

    def exchange(self, form: dict[str, str]) -> dict[str, str]:
        """The tokens for a code, once, for whoever knows the secret and what the challenge was made of."""
        asked = self.codes.pop(form["code"])
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == asked["code_challenge"]
        assert form["client_secret"] == "s3cret"
        claims = {
            "iss": self.url, "aud": "console", "exp": time.time() + 60, "iat": time.time(), "nonce": asked["nonce"],
            **self.claims, **self.lies,
        }  # fmt: skip
        token = jwt.encode(claims, self.sign_with, algorithm=self.header["alg"], headers=self.header)
        return {"access_token": "a", "token_type": "Bearer", "id_token": token}


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        of: Provider = self.server
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(of.key.public_key()))
        self._answer(
            {
                "/.well-known/openid-configuration": {
                    "issuer": of.url,
                    "authorization_endpoint": f"{of.url}/authorize",
                    "token_endpoint": f"{of.url}/token",
                    "userinfo_endpoint": f"{of.url}/userinfo",
                    "jwks_uri": f"{of.url}/keys",
                    "token_endpoint_auth_methods_supported": ["client_secret_post"],
                },
                "/keys": {"keys": [{**public, "kid": "k", "alg": "RS256", "use": "sig"}]},
                "/userinfo": of.told or of.claims,
            }[self.path]
        )

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._answer(self.server.exchange({name: values[0] for name, values in parse_qs(text).items()}))

    def _answer(self, document: dict) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args) -> None:
        pass


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    provider = Provider()
    thread = threading.Thread(target=provider.serve_forever, daemon=True)
    thread.start()
    yield provider
    provider.shutdown()
    provider.server_close()
    thread.join(timeout=5)


@pytest.fixture
def provider(running, settings, db) -> Provider:
    running.reset()
    settings.IDENTITY = AuthSettings.read(
        {
            "SLUICE_OIDC_ISSUER": running.url,
            "SLUICE_OIDC_CLIENT_ID": "console",
            "SLUICE_OIDC_CLIENT_SECRET": "s3cret",
            "SLUICE_OIDC_NAME": "Corporate",
            "SLUICE_OIDC_GROUPS": "ops=operator, help = support",
        }
    )
    settings.SOCIALACCOUNT_PROVIDERS = settings.IDENTITY.providers
    return running


def come_in(provider: Provider, client: Client | None = None, **query: str):
    client = client or Client()
    there = client.get(reverse("openid_connect_login", kwargs={"provider_id": PROVIDER}), query)
    back = provider.authorize(there["Location"])
    return client, client.get(reverse("openid_connect_callback", kwargs={"provider_id": PROVIDER}), back)


def test_the_login_offers_single_sign_on_where_it_is_set_up(provider, settings):
    assert "Sign in with Corporate" in Client().get(reverse("login")).content.decode()
    settings.IDENTITY = AuthSettings()
    assert "Corporate" not in Client().get(reverse("login")).content.decode()
    url = reverse("openid_connect_login", kwargs={"provider_id": PROVIDER})
    assert Client().get(url).status_code == 404


def test_somebody_new_comes_in_with_the_roles_of_their_groups(provider):
    client, response = come_in(provider, next="/queues/")
    assert response["Location"] == "/queues/"
    user = User.objects.get(username="ada")
    assert [group.name for group in user.groups.all()] == ["operator"]
    assert has_permission(user, Permission.REMOVE)
    assert not user.has_usable_password()
    assert client.get(reverse("account")).status_code == 200
    assert [(each.who, each.action) for each in AuditEntry.objects.all()] == [
        ("ada", "log in"),
        ("ada", "set groups"),
        ("ada", "create user"),
    ]


def test_who_comes_again_is_the_same_with_the_groups_of_today_and_those_an_admin_gave(provider):
    come_in(provider)
    user = User.objects.get(username="ada")
    user.groups.add(Group.objects.create(name="billing"))
    provider.claims |= {"groups": ["help"], "preferred_username": "ada.new"}
    come_in(provider)
    assert User.objects.count() == 1
    assert sorted(group.name for group in user.groups.all()) == ["billing", "support"]


def refused(provider: Provider) -> str:
    client, response = come_in(provider)
    assert client.get(reverse("account")).status_code == 302
    entry = AuditEntry.objects.first()
    assert entry.outcome in ("denied", "failed")
    assert response.status_code in (200, 401, 403)
    return entry.detail


def test_who_is_in_no_known_group_is_turned_away_also_later(provider):
    provider.claims["groups"] = ["sales"]
    assert "not in a group" in refused(provider)
    assert not User.objects.exists()
    provider.claims["groups"] = ["ops"]
    come_in(provider)
    provider.claims["groups"] = []
    assert "not in a group" in refused(provider)


def test_nobody_gets_the_account_of_somebody_with_a_password_by_having_their_name(provider):
    make_user("admin", name="ada")
    assert "with a password" in refused(provider)
    assert not SocialAccount.objects.exists()


def test_a_closed_account_stays_closed(provider):
    come_in(provider)
    User.objects.update(is_active=False)
    assert "disabled" in refused(provider)


LIES = {
    "another issuer": {"iss": "https://evil.example"},
    "another client": {"aud": "somebody else"},
    "yesterday": {"exp": 1},
    "another login": {"nonce": "n"},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_token_that_is_not_for_this_login_is_refused(lie, provider):
    provider.lies = lie
    refused(provider)
    assert not User.objects.exists()


def test_a_token_that_somebody_else_signed_is_refused(provider):
    provider.sign_with = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    refused(provider)


def test_a_token_signed_with_a_shared_secret_is_refused(provider):
    provider.sign_with, provider.header = "s3cret" * 8, {"kid": "k", "alg": "HS256"}
    assert "the signature of the identity token is not valid" in refused(provider)


def test_what_the_provider_tells_of_somebody_else_is_refused(provider):
    provider.told = {"sub": "2", "preferred_username": "root", "groups": ["ops"]}
    assert "name different users" in refused(provider)


def test_an_answer_to_a_question_nobody_asked_is_refused(provider):
    url = reverse("openid_connect_callback", kwargs={"provider_id": PROVIDER})
    assert Client().get(url, {"code": "c", "state": "s"}).status_code in (200, 401, 403)
    assert AuditEntry.objects.get().outcome == "failed"


def test_a_provider_that_cannot_be_reached_is_said_to_be(provider, settings):
    settings.IDENTITY = AuthSettings.read(
        {"SLUICE_OIDC_ISSUER": "http://127.0.0.1:9", "SLUICE_OIDC_CLIENT_ID": "console"}
    )
    settings.SOCIALACCOUNT_PROVIDERS = settings.IDENTITY.providers
    response = Client().get(reverse("openid_connect_login", kwargs={"provider_id": PROVIDER}))
    assert "is unreachable" in response.content.decode()


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({"SLUICE_OIDC_ISSUER": "https://x"}, "requires SLUICE_OIDC_CLIENT_ID"),
        ({"SLUICE_OIDC_GROUPS": "ops"}, "is not a pair THEIRS=OURS"),
        ({"SLUICE_SECOND_FACTOR": "king"}, "unknown role king"),
        ({"SLUICE_SESSION_HOURS": "0"}, "must be a whole number from 1 to 8760"),
    ],
)
def test_settings_that_cannot_be_are_named(variables, problem):
    with pytest.raises(ConfigurationRefused, match=problem):
        AuthSettings.read(variables)


def test_settings_are_read():
    assert AuthSettings.read({}) == AuthSettings()
    assert AuthSettings.read({"SLUICE_SECOND_FACTOR": "admin, operator"}).second_factor == {Role.ADMIN, Role.OPERATOR}
    assert AuthSettings.read({"SLUICE_SECOND_FACTOR": "all"}).second_factor == set(Role)
