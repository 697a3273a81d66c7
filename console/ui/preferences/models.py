"""Store a user's display settings, favorites and saved views."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class UserSetting(models.Model):
    """Store a user's display settings."""

    class Theme(models.TextChoices):
        """Name a color theme, or follow the system."""

        AUTO = "auto", "System"
        LIGHT = "light", "Light"
        DARK = "dark", "Dark"
        CONTRAST = "contrast", "Contrast"  #: high contrast, light or dark as the system says

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="setting")
    theme = models.CharField(max_length=8, choices=Theme, default=Theme.AUTO)
    zone = models.CharField(max_length=64, default="UTC")  #: the name of the time zone in which pages tell times
    bell_seen = models.DateTimeField(null=True)  #: when the bell was last opened
    single_keys = models.BooleanField(
        default=True
    )  #: whether single letters do something (WCAG 2.1.4 lets users say no)


class Star(models.Model):
    """Store a favorite of a user; subjects are defined in console.ui.preferences.favourites."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="stars")
    MAX_SUBJECT = 1100
    subject = models.CharField(max_length=MAX_SUBJECT)  #: `queue://orders`, `client://billing`

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "subject"], name="star_once")]


class SavedView(models.Model):
    """Store a list's filter, sorting and search under a name."""

    #: Views of one list that a user may keep, and characters of a name.
    MOST, MAX_NAME = 20, 40

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="views")
    page = models.CharField(max_length=32)  #: name of the list's page
    name = models.CharField(max_length=MAX_NAME)
    query = models.CharField(max_length=500, blank=True)  #: as in the URL, with its `?`

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["user", "page", "name"], name="view_once")]
