"""The group of those whose programs may produce and consume, without any right in the console."""

from django.db import migrations


def make_group(apps, schema_editor):
    apps.get_model("auth", "Group").objects.get_or_create(name="client")


class Migration(migrations.Migration):
    dependencies = [("console", "0003_schedules")]
    operations = [migrations.RunPython(make_group, migrations.RunPython.noop)]
