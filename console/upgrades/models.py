"""Define the record of the versions of Sluice that used a database."""

from __future__ import annotations

from django.db import models


class UsedVersion(models.Model):
    """A version of Sluice that used this database, and since when; the newest row is the present one."""

    version = models.CharField(max_length=40)
    since = models.DateTimeField(auto_now_add=True)
