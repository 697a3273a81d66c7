"""Store the expected traffic of destinations, and schedule its updates."""

from django.db import migrations, models

NAME = "Expected traffic of destinations"
#: Minutes between updates: ranges are made a day in advance, and a new destination gets its own within an hour.
MINUTES = 60


def add(apps, schema_editor):
    interval, _ = apps.get_model("django_celery_beat", "IntervalSchedule").objects.get_or_create(
        every=MINUTES, period="minutes"
    )
    defaults = {"task": "console.update_traffic_ranges", "interval": interval, "queue": "default"}
    apps.get_model("django_celery_beat", "PeriodicTask").objects.get_or_create(name=NAME, defaults=defaults)


def remove(apps, schema_editor):
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0032_objective"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]
    operations = [
        migrations.CreateModel(
            "TrafficRange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("destination", models.CharField(max_length=1100, unique=True)),
                ("first", models.IntegerField()),
                ("ranges", models.JSONField(default=list)),
                ("recorded_hours", models.PositiveIntegerField(default=0)),
            ],
            options={"ordering": ("destination",)},
        ),
        migrations.RunPython(add, remove),
    ]
