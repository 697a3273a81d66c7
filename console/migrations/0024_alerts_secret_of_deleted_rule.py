from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0023_audit_asked")]

    operations = [
        migrations.AddField("alertfiring", "secret", models.CharField(blank=True, max_length=100)),
    ]
