"""Let one backup run at a time, whichever hosts share the database, and store when its process was last alive."""

from django.db import migrations, models
from django.utils import timezone


def end_running(apps, schema_editor):
    """Fail backups that are recorded as running: the worker of the previous version has ended."""
    runs = apps.get_model("console", "BackupRun").objects.filter(state="running")
    runs.update(state="failed", finished=timezone.now(), step="", reason="Sluice was upgraded before it was done.")


class Migration(migrations.Migration):
    dependencies = [("console", "0036_used_version")]

    operations = [
        migrations.AddField("backuprun", "heartbeat", models.DateTimeField(null=True)),
        migrations.RunPython(end_running, migrations.RunPython.noop),
        migrations.AddConstraint(
            "backuprun",
            models.UniqueConstraint(condition=models.Q(state="running"), fields=("state",), name="backup_running_once"),
        ),
    ]
