from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0020_lists_star_subject")]

    operations = [
        migrations.RenameModel("Edit", "Replacement"),
        migrations.AddField("job", "edit", models.JSONField(null=True)),
        migrations.AlterField(
            "job",
            "action",
            models.CharField(
                choices=[
                    ("move", "Move"),
                    ("copy", "Copy"),
                    ("retry", "Resubmit"),
                    ("remove", "Delete"),
                    ("edit", "Edit"),
                ],
                max_length=16,
            ),
        ),
        migrations.AddField(
            "joboutcome", "new_id", models.CharField(blank=True, db_index=True, default="", max_length=300)
        ),
    ]
