"""What trials judge leaves the requests of runs, which lists read, for a column of its own."""

from django.db import migrations, models


def part(apps, schema_editor):
    """Move what is judged."""
    for run in apps.get_model("console", "AnalysisRun").objects.filter(kind="whatif"):
        run.trial = run.request.pop("trial", None)
        run.save(update_fields=["request", "trial"])


def join(apps, schema_editor):
    """Put it back."""
    for run in apps.get_model("console", "AnalysisRun").objects.exclude(trial=None):
        run.request["trial"] = run.trial
        run.save(update_fields=["request"])


class Migration(migrations.Migration):
    dependencies = [("console", "0018_settings_zone")]

    operations = [
        migrations.AddField("analysisrun", "trial", models.JSONField(null=True)),
        migrations.RunPython(part, join),
    ]
