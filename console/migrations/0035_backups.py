"""Store the schedule of backups and the backups that were made, and look every half minute whether one is due."""

from django.db import migrations, models

NAME = "Start backups that are due"
SECONDS = 30


def add(apps, schema_editor):
    interval, _ = apps.get_model("django_celery_beat", "IntervalSchedule").objects.get_or_create(
        every=SECONDS, period="seconds"
    )
    defaults = {"task": "console.look_at_backups", "interval": interval, "queue": "default"}
    apps.get_model("django_celery_beat", "PeriodicTask").objects.get_or_create(name=NAME, defaults=defaults)


def remove(apps, schema_editor):
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0034_objective_of_subscriptions"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]
    operations = [
        migrations.CreateModel(
            name="BackupRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("state", models.CharField(choices=[("running", "Running"), ("done", "Done"), ("failed", "Failed")], default="running", max_length=8)),
                ("asked_by", models.CharField(blank=True, max_length=150)),
                ("with_archive", models.BooleanField(default=False)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("finished", models.DateTimeField(null=True)),
                ("path", models.CharField(blank=True, max_length=1000)),
                ("bytes", models.BigIntegerField(default=0)),
                ("pause_ms", models.FloatField(default=0)),
                ("is_encrypted", models.BooleanField(default=False)),
                ("left_out", models.JSONField(default=list)),
                ("reason", models.TextField(blank=True)),
                ("step", models.CharField(blank=True, max_length=200)),
                ("host", models.CharField(blank=True, max_length=255)),
                ("pid", models.IntegerField(null=True)),
                ("data_folder", models.BigIntegerField(default=0)),
            ],
            options={"ordering": ["-created", "-id"], "indexes": [models.Index(fields=["state"], name="console_bac_state_1307ea_idx")]},
        ),
        migrations.CreateModel(
            name="BackupSchedule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("cron", models.CharField(blank=True, max_length=100)),
                ("zone", models.CharField(default="UTC", max_length=64)),
                ("keep", models.PositiveSmallIntegerField(default=7)),
                ("with_archive", models.BooleanField(default=False)),
                ("due", models.DateTimeField(null=True)),
                ("changed", models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.RunPython(add, remove),
    ]
