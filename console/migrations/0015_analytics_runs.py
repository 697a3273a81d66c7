"""Turns, workers, pins and retention of runs of analyses."""

import json

from django.db import migrations, models

NAME = "Forget old runs of analyses"


def schedule(apps, schema_editor):
    Crontab = apps.get_model("django_celery_beat", "CrontabSchedule")
    Task = apps.get_model("django_celery_beat", "PeriodicTask")
    crontab, _ = Crontab.objects.get_or_create(minute="40", hour="3", timezone="UTC")
    defaults = {"task": "console.forget_runs", "crontab": crontab, "queue": "default", "args": json.dumps([])}
    Task.objects.get_or_create(name=NAME, defaults=defaults)


def unschedule(apps, schema_editor):
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0014_repair_resubmit"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]
    operations = [
        migrations.AddField("analysisrun", "pinned", models.BooleanField(default=False)),
        migrations.AddField("analysisrun", "rows", models.PositiveBigIntegerField(null=True)),
        migrations.AddField("analysisrun", "sent", models.DateTimeField(null=True)),
        migrations.AddField("analysisrun", "worker", models.CharField(blank=True, max_length=150)),
        migrations.RunPython(schedule, unschedule),
    ]
