"""Schedule the check whether hourly and daily tables are to be updated."""

from django.db import migrations

NAME = "Tables of recorded traffic"
#: Minutes between checks: an hour is complete ten minutes after its end.
MINUTES = 10


def add(apps, schema_editor):
    interval, _ = apps.get_model("django_celery_beat", "IntervalSchedule").objects.get_or_create(
        every=MINUTES, period="minutes"
    )
    defaults = {"task": "analytics.tasks.check_tables", "interval": interval, "queue": "default"}
    apps.get_model("django_celery_beat", "PeriodicTask").objects.get_or_create(name=NAME, defaults=defaults)


def remove(apps, schema_editor):
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0030_sql_queries"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]
    operations = [migrations.RunPython(add, remove)]
