"""The form of an objective."""

from __future__ import annotations

from django import forms
from django.core.exceptions import ValidationError

from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import DestinationKind
from console.access.roles import Scope
from console.objectives.models import Objective

#: Longest time for an acknowledgement, a week: a message of that age is no longer late but forgotten.
MAX_SECONDS = 7 * 86_400
#: Rollups keep cells of hours for 62 days; two days less, as a period begins within one.
MAX_DAYS = 60
#: Least and greatest share. At 100% there is no error budget.
LEAST_PERCENT, MOST_PERCENT = 1, 99.999


class ObjectiveForm(forms.ModelForm):
    """Form of an objective."""

    class Meta:
        model = Objective
        fields = ("name", "kind", "pattern", "subscription", "percent", "seconds", "days")

    percent = forms.FloatField(min_value=LEAST_PERCENT, max_value=MOST_PERCENT, initial=95)
    seconds = forms.IntegerField(min_value=1, max_value=MAX_SECONDS, initial=30)
    days = forms.IntegerField(min_value=1, max_value=MAX_DAYS, initial=7)

    def clean_pattern(self) -> str:
        """Check the pattern of queues or topics; `queue://` or `topic://` before it is optional."""
        is_of_queues = self.cleaned_data.get("kind") != Objective.Kind.SUBSCRIPTION
        try:
            scope = Scope.parse(self.cleaned_data["pattern"])
        except InvalidDestination as error:
            raise ValidationError(str(error)) from error
        if is_of_queues and scope.kind is DestinationKind.TOPIC:
            raise ValidationError("Enter a pattern of queues, such as orders.>, or choose durable subscriptions.")
        if not is_of_queues and scope.kind is DestinationKind.QUEUE:
            raise ValidationError("Enter a pattern of topics, such as prices.>, or choose queues.")
        return scope.pattern

    def clean_subscription(self) -> str:
        """Check that only an objective of durable subscriptions names one."""
        name = self.cleaned_data["subscription"].strip()
        if name and self.cleaned_data.get("kind") != Objective.Kind.SUBSCRIPTION:
            raise ValidationError("Leave the subscription empty, or choose durable subscriptions.")
        return name
