"""Makes the broker's management commands known to Django."""

from django.apps import AppConfig


class BrokerAppConfig(AppConfig):
    """The Django app around the broker: commands only, no models."""

    name = "brokerapp"
    label = "brokerapp"
    verbose_name = "Sluice broker"
