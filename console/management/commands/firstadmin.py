"""`manage.py firstadmin`: somebody who can log in."""

from django.core.management.base import BaseCommand

from console import firstadmin


class Command(BaseCommand):
    help = "Create the user admin with a generated password, when there is no user yet."

    def handle(self, **options) -> None:
        if password := firstadmin.create():
            self.stdout.write(f"user {firstadmin.NAME}, password {password} (kept in {firstadmin.password_file()})")
        else:
            self.stdout.write("there are users already")
