"""Stars are not of destinations alone: clients have them too."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("console", "0019_analytics_trials"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="star", name="star_once"),
        migrations.RenameField(model_name="star", old_name="destination", new_name="subject"),
        migrations.AddConstraint(
            model_name="star",
            constraint=models.UniqueConstraint(fields=("user", "subject"), name="star_once"),
        ),
    ]
