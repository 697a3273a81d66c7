"""What beat does from the first start on: an hourly analysis, and the end of runs whose worker was lost."""

import json

from django.db import migrations

HOURLY = "Traffic by destination, last hour, every hour, five minutes past"
REAP = "Fail runs whose worker was lost"


def schedule(apps, schema_editor):
    Crontab = apps.get_model("django_celery_beat", "CrontabSchedule")
    Interval = apps.get_model("django_celery_beat", "IntervalSchedule")
    Task = apps.get_model("django_celery_beat", "PeriodicTask")
    crontab, _ = Crontab.objects.get_or_create(minute="5", timezone="UTC")
    interval, _ = Interval.objects.get_or_create(every=5, period="minutes")
    Task.objects.get_or_create(
        name=HOURLY,
        defaults={
            "task": "console.start_scheduled",
            "crontab": crontab,
            "queue": "default",
            "args": json.dumps(["traffic", "1h"]),
            "kwargs": json.dumps({"schedule": "hourly schedule"}),
        },
    )
    Task.objects.get_or_create(name=REAP, defaults={"task": "console.reap", "interval": interval, "queue": "default"})


def unschedule(apps, schema_editor):
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name__in=(HOURLY, REAP)).delete()


class Migration(migrations.Migration):
    dependencies = [("console", "0002_roles"), ("django_celery_beat", "0019_alter_periodictasks_options")]
    operations = [migrations.RunPython(schedule, unschedule)]
