from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0031_table_schedule")]

    operations = [
        migrations.CreateModel(
            "Objective",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80, unique=True)),
                ("pattern", models.CharField(max_length=1100)),
                ("percent", models.FloatField()),
                ("seconds", models.PositiveIntegerField()),
                ("days", models.PositiveSmallIntegerField()),
                ("author", models.CharField(max_length=150)),
                ("changed", models.DateTimeField(auto_now=True)),
            ],
            options={"ordering": ("name",)},
        ),
    ]
