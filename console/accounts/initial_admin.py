"""The first user of a new installation: admin, with a generated password in a file that only its owner can read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import Group, User

from brokerapp.system.process_lock import private_folder
from console.access.permissions import Role

NAME = "admin"
PASSWORD_BYTES = 12  # 16 characters


def password_file() -> Path:
    """Where the first admin's password is kept."""
    return settings.SLUICE.data / "admin-password"


def stored_password() -> str | None:
    """The password as it was generated, if it is still kept. Somebody may have changed it since."""
    file = password_file()
    return file.read_text().strip() if file.exists() else None


def create_initial_admin() -> str | None:
    """Create the first admin when there is no user yet; the password, which is told this once."""
    if User.objects.exists():
        return None
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    # The file first: a user whose password nobody has would be worse than a password without a user.
    _store_password(password, password_file())
    admin = User.objects.create_superuser(NAME, password=password)
    admin.groups.add(Group.objects.get_or_create(name=Role.ADMIN)[0])
    return password


def _store_password(password: str, file: Path) -> None:
    private_folder(file.parent)
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(password + "\n")
