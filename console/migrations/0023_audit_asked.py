from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0022_alerts_topics")]

    operations = [
        migrations.AlterField(
            "auditentry",
            "outcome",
            models.CharField(
                choices=[
                    ("done", "Done"),
                    ("asked", "Asked"),
                    ("denied", "Denied"),
                    ("refused", "Refused"),
                    ("failed", "Failed"),
                ],
                max_length=16,
            ),
        ),
    ]
