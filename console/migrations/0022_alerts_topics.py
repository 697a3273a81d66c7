from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0021_jobs_edit")]

    operations = [migrations.AddField("alertfiring", "topics", models.JSONField(default=list))]
