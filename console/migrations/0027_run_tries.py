from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0026_job_returned")]

    operations = [
        migrations.AddField("analysisrun", "tries", models.PositiveSmallIntegerField(default=0)),
    ]
