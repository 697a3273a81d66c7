"""Store API tokens, as a digest only."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class ApiToken(models.Model):
    """Store an API token as a digest, with permissions, scopes and expiry date."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)  #: what it is for
    digest = models.CharField(max_length=64, unique=True)  #: SHA-256 of the token, which nobody keeps
    hint = models.CharField(max_length=16)  #: how the token begins
    verbs = models.JSONField(default=list)  #: names of permissions in lower case
    scopes = models.JSONField(default=list)  #: patterns of destinations; none: wherever its user has the right
    made_by = models.CharField(max_length=150)
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()
    used = models.DateTimeField(null=True)  #: last, to the minute
    used_from = models.CharField(max_length=64, blank=True)
    revoked = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created", "-id"]
