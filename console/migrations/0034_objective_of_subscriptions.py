from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0033_traffic_range")]

    operations = [
        migrations.AddField(
            "Objective",
            "kind",
            models.CharField(
                choices=[("queue", "Queues"), ("subscription", "Durable subscriptions")],
                default="queue",
                max_length=12,
            ),
        ),
        migrations.AddField("Objective", "subscription", models.CharField(blank=True, default="", max_length=1100)),
    ]
