"""Read a user's display settings once a request."""

from __future__ import annotations

from console.access.permissions import AnyUser
from console.ui.preferences.models import UserSetting


def settings_of(user: AnyUser) -> UserSetting:
    """Return the user's settings, cached on the user object.

    A socket's user lives longer: `read_setting` tells what holds now.
    """
    if not hasattr(user, "_setting"):
        user._setting = load_settings(user)
    return user._setting


def load_settings(user: AnyUser) -> UserSetting:
    """Return the current settings from the database; defaults for a user without any."""
    return UserSetting.objects.filter(user=user).first() or UserSetting()
