from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0035_backups")]

    operations = [
        migrations.CreateModel(
            "UsedVersion",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.CharField(max_length=40)),
                ("since", models.DateTimeField(auto_now_add=True)),
            ],
        ),
    ]
