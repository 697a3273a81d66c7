"""`manage.py firstadmin`: the first user of a new installation."""

import os
import secrets
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.management.base import BaseCommand

from console.access import Role

NAME = "admin"
PASSWORD_BYTES = 12  # 16 characters


def password_file() -> Path:
    """Where the first admin's password is kept, readable by the owner of the installation only."""
    return settings.SLUICE.data / "admin-password"


def first_admin() -> str | None:
    """Create the first admin when there is no user yet; the password, which is told this once."""
    if User.objects.exists():
        return None
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    # The file first: a user whose password nobody has would be worse than a password without a user.
    keep(password, password_file())
    admin = User.objects.create_superuser(NAME, password=password)
    admin.groups.add(Group.objects.get_or_create(name=Role.ADMIN)[0])
    return password


def keep(password: str, file: Path) -> None:
    """Write the password where only the owner can read it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(password + "\n")


class Command(BaseCommand):
    help = "Create the user admin with a generated password, when there is no user yet."

    def handle(self, **options) -> None:
        if password := first_admin():
            self.stdout.write(f"user {NAME}, password {password} (kept in {password_file()})")
        else:
            self.stdout.write("there are users already")
