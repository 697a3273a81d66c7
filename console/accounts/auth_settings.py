"""Read authentication settings from the environment: single sign-on, two-factor roles, session length."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from brokerapp.errors import ConfigurationRefused
from brokerapp.system.secret_variables import with_secrets
from console.access.roles import Role

#: Hours until somebody has to log in again.
SESSION_HOURS = 14 * 24
#: How allauth names the only provider there is.
PROVIDER = "sso"


@dataclass(frozen=True, slots=True)
class AuthSettings:
    """Hold the authentication settings of the installation."""

    issuer: str = ""  #: of OpenID Connect; "": there is no single sign-on
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    name: str = "single sign-on"  #: what the button of the login says
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    name_claim: str = "preferred_username"
    groups_claim: str = "groups"
    groups: Mapping[str, str] = field(default_factory=dict)  #: the provider's group -> a group here
    second_factor: frozenset[Role] = frozenset()  #: roles that need one
    session_hours: int = SESSION_HOURS

    @staticmethod
    def read(variables: Mapping[str, str] = os.environ) -> AuthSettings:
        """Return the settings that these variables describe. Raises ConfigurationRefused."""
        variables = with_secrets(variables)
        issuer = variables.get("SLUICE_OIDC_ISSUER", "").rstrip("/")
        client_id = variables.get("SLUICE_OIDC_CLIENT_ID", "")
        if issuer and not client_id:
            raise ConfigurationRefused("SLUICE_OIDC_ISSUER requires SLUICE_OIDC_CLIENT_ID")
        return AuthSettings(
            issuer=issuer,
            client_id=client_id,
            client_secret=variables.get("SLUICE_OIDC_CLIENT_SECRET", ""),
            name=variables.get("SLUICE_OIDC_NAME", "single sign-on"),
            scopes=tuple(variables.get("SLUICE_OIDC_SCOPES", "openid profile email").split()),
            name_claim=variables.get("SLUICE_OIDC_NAME_CLAIM", "preferred_username"),
            groups_claim=variables.get("SLUICE_OIDC_GROUPS_CLAIM", "groups"),
            groups=_groups(variables.get("SLUICE_OIDC_GROUPS", "")),
            second_factor=_roles(variables.get("SLUICE_SECOND_FACTOR", "")),
            session_hours=_hours(variables.get("SLUICE_SESSION_HOURS", str(SESSION_HOURS))),
        )

    @property
    def providers(self) -> dict[str, Any]:
        """Return the provider's settings as allauth expects them."""
        if not self.issuer:
            return {}
        app = {
            "provider_id": PROVIDER,
            "name": self.name,
            "client_id": self.client_id,
            "secret": self.client_secret,
            "settings": {"server_url": self.issuer, "scope": list(self.scopes)},
        }
        return {"openid_connect": {"APPS": [app], "OAUTH_PKCE_ENABLED": True, "SCOPE": list(self.scopes)}}


def _groups(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if wrong := [theirs for theirs, separator, ours in pairs if not (separator and theirs.strip() and ours.strip())]:
        raise ConfigurationRefused(f"SLUICE_OIDC_GROUPS: {wrong[0]!r} is not a pair THEIRS=OURS")
    return {theirs.strip(): ours.strip() for theirs, _, ours in pairs}


def _roles(text: str) -> frozenset[Role]:
    if text.strip() == "all":
        return frozenset(Role)
    names = {part.strip() for part in text.split(",") if part.strip()}
    if wrong := names - set(Role):
        raise ConfigurationRefused(
            f"SLUICE_SECOND_FACTOR: unknown role {', '.join(sorted(wrong))}; use `all` or role names"
        )
    return frozenset(map(Role, names))


def _hours(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 24 * 365:
        raise ConfigurationRefused(f"SLUICE_SESSION_HOURS must be a whole number from 1 to 8760, not {text!r}")
    return int(text)
