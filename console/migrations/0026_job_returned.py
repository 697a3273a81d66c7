from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0025_message_search")]

    operations = [
        migrations.AddField("job", "returned", models.PositiveIntegerField(null=True)),
    ]
