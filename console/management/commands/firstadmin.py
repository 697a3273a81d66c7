"""Create the initial admin: `manage.py firstadmin`."""

from django.core.management.base import BaseCommand

from console.accounts import initial_admin


class Command(BaseCommand):
    help = "Create the user admin with a generated password if no users exist."

    def handle(self, **options) -> None:
        if password := initial_admin.create_initial_admin():
            self.stdout.write(
                f"user {initial_admin.NAME}, password {password} (stored in {initial_admin.password_file()})"
            )
        else:
            self.stdout.write("users already exist")
