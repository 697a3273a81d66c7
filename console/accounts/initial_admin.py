"""Create the first user of an installation: admin, with a generated password in a private file."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import Group, User

from brokerapp.system.process_lock import make_private_directory
from console.access.permissions import Role

NAME = "admin"
PASSWORD_BYTES = 12  # 16 characters


def password_file() -> Path:
    """Return the path of the file with the initial admin's password."""
    return settings.SLUICE.data / "admin-password"


def stored_password() -> str | None:
    """Return the generated password if its file exists; it may have been changed since."""
    file = password_file()
    return file.read_text().strip() if file.exists() else None


def create_initial_admin() -> str | None:
    """Create the initial admin if there are no users; return the password, which is printed once."""
    if User.objects.exists():
        return None
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    # The file first: a user whose password nobody has would be worse than a password without a user.
    _store_password(password, password_file())
    admin = User.objects.create_superuser(NAME, password=password)
    admin.groups.add(Group.objects.get_or_create(name=Role.ADMIN)[0])
    return password


def _store_password(password: str, file: Path) -> None:
    make_private_directory(file.parent)
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(password + "\n")
