"""Create the tables of the database, as Django's command does; the data folder first, where SQLite's file is."""

from django.conf import settings
from django.core.management.base import CommandError
from django.core.management.commands import migrate

from brokerapp.errors import ConfigurationRefused
from console.accounts.secret_key import secret_key


class Command(migrate.Command):
    def execute(self, *arguments, **options):
        try:
            secret_key(settings.SECRET_FILE)
        except ConfigurationRefused as refused:
            raise CommandError(str(refused)) from refused
        return super().execute(*arguments, **options)
