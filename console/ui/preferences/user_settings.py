"""What a user chose for their own screen: its theme, its clock, its keys. Read once a request."""

from __future__ import annotations

from console.access.permissions import AnyUser
from console.ui.preferences.models import UserSetting


def settings_of(user: AnyUser) -> UserSetting:
    """What this user chose, as it was when this user object was asked first: objects live as long as a request.

    A socket's user lives longer: `read_setting` tells what holds now.
    """
    if not hasattr(user, "_setting"):
        user._setting = load_settings(user)
    return user._setting


def load_settings(user: AnyUser) -> UserSetting:
    """The same as of now; the defaults of who chose nothing."""
    return UserSetting.objects.filter(user=user).first() or UserSetting()
