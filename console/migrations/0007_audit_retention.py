"""Once a day entries of the audit trail that are older than SLUICE_AUDIT_DAYS go, where that is set."""

from django.db import migrations

NAME = "Forget old entries of the audit trail"


def schedule(apps, schema_editor):
    Crontab = apps.get_model("django_celery_beat", "CrontabSchedule")
    Task = apps.get_model("django_celery_beat", "PeriodicTask")
    crontab, _ = Crontab.objects.get_or_create(minute="20", hour="3", timezone="UTC")
    defaults = {"task": "console.forget_audit", "crontab": crontab, "queue": "default"}
    Task.objects.get_or_create(name=NAME, defaults=defaults)


def unschedule(apps, schema_editor):
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    dependencies = [("console", "0006_audit_trail"), ("django_celery_beat", "0019_alter_periodictasks_options")]
    operations = [migrations.RunPython(schedule, unschedule)]
