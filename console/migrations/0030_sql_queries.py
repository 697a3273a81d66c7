"""Saved SQL statements, and what a run of one may see."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0029_report_document")]

    operations = [
        migrations.AddField("analysisrun", "access", models.JSONField(null=True)),
        migrations.CreateModel(
            "SavedQuery",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80)),
                ("description", models.CharField(blank=True, max_length=300)),
                ("statement", models.TextField()),
                ("window", models.CharField(default="24h", max_length=8)),
                ("chart", models.JSONField(default=dict)),
                ("owner", models.CharField(max_length=150)),
                ("everyone", models.BooleanField(default=False)),
                ("roles", models.JSONField(default=list)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("changed", models.DateTimeField(auto_now=True)),
            ],
            options={"ordering": ["name", "id"]},
        ),
        migrations.AddConstraint(
            "savedquery", models.UniqueConstraint(fields=("owner", "name"), name="query_name_of_owner")
        ),
    ]
