"""Sign users in with OpenID Connect; the provider's groups decide their roles."""

from __future__ import annotations

from typing import Any

from allauth.account.internal.decorators import login_not_required
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.helpers import render_authentication_error
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.models import SocialLogin
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.crypto import get_random_string
from django.utils.http import url_has_allowed_host_and_scheme
from requests import RequestException

from console.accounts.auth_settings import PROVIDER
from console.audit import trail
from console.audit.models import AuditEntry

#: In the session: what the identity token must repeat.
NONCE = "oidc_nonce"
#: Signatures by the provider's private key; one by a shared secret would let every client sign.
ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})


class VerifyingOidcAdapter(OpenIDConnectOAuth2Adapter):
    """Accept an identity token only with a valid signature and the nonce of its request."""

    def complete_login(self, request: HttpRequest, app: Any, token: Any, **kwargs: Any) -> SocialLogin:
        """Return the login of the verified token and the provider's user information."""
        raw = kwargs["response"].get("id_token")
        if not raw:
            raise OAuth2Error("the provider sent no identity token")
        claims = self._decode_id_token(app, raw)
        if claims.get("nonce") != request.session.pop(NONCE, None):
            raise OAuth2Error("the identity token does not match the request (nonce)")
        told = self._fetch_user_info(token.token) if "userinfo_endpoint" in self.openid_config else {}
        if told and told.get("sub") != claims["sub"]:
            raise OAuth2Error("the user information and the identity token name different users")
        return self.get_provider().sociallogin_from_response(request, {"userinfo": {**told, **claims}})

    def _decode_id_token(self, app: Any, id_token: str) -> dict[str, Any]:
        if jwtkit.jwt.get_unverified_header(id_token).get("alg") not in ALGORITHMS:
            raise OAuth2Error("the signature of the identity token is not valid")
        return jwtkit.verify_and_decode(
            credential=id_token,
            keys_url=self.openid_config["jwks_uri"],
            issuer=self.openid_config["issuer"],
            audience=app.client_id,
            lookup_kid=jwtkit.lookup_kid_jwk,
        )


class SingleSignOnAdapter(DefaultSocialAccountAdapter):
    """Decide who can sign in with single sign-on, under which name and in which groups."""

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Deny access without a known group; otherwise set the user's groups."""
        claims = sociallogin.account.extra_data["userinfo"]
        identity = settings.IDENTITY
        name = str(claims.get(identity.name_claim) or "")
        theirs = _listed(claims.get(identity.groups_claim))
        ours = {group for each, group in identity.groups.items() if each in theirs}
        if identity.groups and not ours:
            _deny_login(request, name, "Your account is not in a group with access to this console.")
        if sociallogin.is_existing:
            if not sociallogin.user.is_active:
                _deny_login(request, name, "Your account is disabled.")
            _set_groups(request, sociallogin.user, ours)
        elif not name or User.objects.filter(username__iexact=name).exists():
            why = f"The user {name} already exists, with a password." if name else "The provider sent no user name."
            _deny_login(request, name, f"{why} Contact an administrator.")
        else:
            sociallogin.user.username = name[:150]
            sociallogin.state["groups"] = sorted(ours)

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        """Create the user without a password."""
        user = sociallogin.user
        user.set_unusable_password()
        user.full_clean(exclude=["password"])
        sociallogin.save(request)
        change = trail.AuditChange(after={"by": settings.IDENTITY.issuer})
        actor = _actor(request, user.get_username())
        trail.record(actor, "create user", user.get_username(), AuditEntry.Outcome.DONE, change=change)
        _set_groups(request, user, set(sociallogin.state.get("groups", ())))
        return user

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        """Return True: users without access were denied before."""
        return True

    def is_auto_signup_allowed(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        """Return True: sign-up needs no form."""
        return True

    def on_authentication_error(self, request: HttpRequest, provider: Any, **kwargs: Any) -> None:
        """Write an audit entry; the browser gets no details."""
        reason = str(kwargs.get("exception") or kwargs.get("error") or "unknown")
        trail.record(_actor(request, ""), "log in", "single sign-on", AuditEntry.Outcome.FAILED, reason)


def _listed(value: Any) -> set[str]:
    return {value} if isinstance(value, str) else {str(each) for each in value or ()}


def _set_groups(request: HttpRequest, user: User, ours: set[str]) -> None:
    """Set the user's groups among those that the provider decides; the others stay."""
    managed = set(settings.IDENTITY.groups.values())
    before = set(user.groups.filter(name__in=managed).values_list("name", flat=True))
    if before == ours:
        return
    actor = _actor(request, user.get_username())
    with trail.recording(actor, "set groups", f"user {user}", before={"groups": sorted(before)}) as change:
        user.groups.remove(*Group.objects.filter(name__in=before - ours))
        user.groups.add(*(Group.objects.get_or_create(name=name)[0] for name in ours - before))
        change.after = {"groups": sorted(ours)}


def _actor(request: HttpRequest, name: str) -> trail.AuditActor:
    by = trail.AuditActor.of(request)
    return trail.AuditActor(name, by.address, by.agent, by.via)


def _deny_login(request: HttpRequest, name: str, reason: str) -> None:
    trail.record(_actor(request, name), "log in", f"user {name}", AuditEntry.Outcome.DENIED, reason)
    raise ImmediateHttpResponse(render(request, "socialaccount/refused.html", {"reason": reason}, status=403))


@login_not_required
def login(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Redirect to the provider with a nonce for the identity token."""
    provider = _provider(request, provider_id)
    request.session[NONCE] = get_random_string(32)
    wanted = request.GET.get("next", "")
    next_url = wanted if url_has_allowed_host_and_scheme(wanted, {request.get_host()}) else None
    try:
        return provider.redirect(
            request, process="login", next_url=next_url, auth_params={"nonce": request.session[NONCE]}
        )
    except RequestException as error:
        return render_authentication_error(request, provider, exception=error)


@login_not_required
def callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Complete a sign-in when the provider redirects back."""
    _provider(request, provider_id)
    return OAuth2CallbackView.adapter_view(VerifyingOidcAdapter(request, provider_id))(request)


def _provider(request: HttpRequest, provider_id: str) -> Any:
    if not settings.IDENTITY.issuer or provider_id != PROVIDER:
        raise Http404("Single sign-on provider not found.")
    return VerifyingOidcAdapter(request, provider_id).get_provider()
