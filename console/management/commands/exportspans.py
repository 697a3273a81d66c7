"""Export spans to OpenTelemetry without the other processes: `manage.py exportspans`."""

from django.core.management.base import BaseCommand, CommandError

from analytics.spans import exporter


class Command(BaseCommand):
    help = (
        "Export spans of recorded messages over OTLP until Ctrl-C. `manage.py up` does it with SLUICE_EXPORT_SPANS=1."
    )
    requires_system_checks = ()

    def handle(self, **options) -> None:
        if status := exporter.main():
            raise CommandError("spans are not exported", returncode=status)
