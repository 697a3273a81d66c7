from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0017_people_bell")]

    operations = [
        migrations.AddField(
            model_name="usersetting", name="zone", field=models.CharField(default="UTC", max_length=64)
        ),
    ]
