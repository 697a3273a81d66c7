"""The form of an alert rule."""

from __future__ import annotations

import secrets
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from brokerapp.errors import InvalidDestination, RequestRefused
from console.access.roles import Scope
from console.alerts.delivery.models import AlertRule
from console.alerts.delivery.webhook import check_webhook
from console.alerts.metrics import DESCRIPTIONS, AlertMetric
from console.alerts.rules import AlertCondition

#: Seconds a rule may be held at most, and addresses it may name.
LONGEST_HOLD, MOST_ADDRESSES = 86_400, 10
_OF_RULE = ("metric", "pattern", "below", "threshold", "hold")


class RuleForm(forms.ModelForm):
    """Form of an alert rule with its recipients."""

    made_secret = False  #: whether nobody gave one, so that somebody must be shown it

    class Meta:
        model = AlertRule
        fields = ("name", "metric", "pattern", "below", "threshold", "hold", "mail", "webhook", "secret")

    metric = forms.ChoiceField(choices=[(metric, meaning.label) for metric, meaning in DESCRIPTIONS.items()])
    below = forms.TypedChoiceField(
        choices=[("", "above"), ("1", "below")], coerce=bool, required=False, empty_value=False
    )
    hold = forms.IntegerField(min_value=0, max_value=LONGEST_HOLD, initial=60)
    threshold = forms.FloatField(min_value=0)
    pattern = forms.CharField(required=False, initial=">")
    secret = forms.CharField(required=False, max_length=100)

    def clean_pattern(self) -> str:
        """Normalize the pattern to the notation of scopes."""
        try:
            return str(Scope.parse(self.cleaned_data["pattern"] or ">"))
        except InvalidDestination as error:
            raise ValidationError(str(error)) from error

    def clean_mail(self) -> str:
        """Addresses, comma separated."""
        addresses = [each.strip() for each in self.cleaned_data["mail"].split(",") if each.strip()]
        if len(addresses) > MOST_ADDRESSES:
            raise ValidationError(f"Enter at most {MOST_ADDRESSES} addresses.")
        for each in addresses:
            validate_email(each)
        return ", ".join(addresses)

    def clean_webhook(self) -> str:
        """Return a web address that something may be sent to."""
        url = self.cleaned_data["webhook"].strip()
        if url:
            try:
                check_webhook(url)
            except RequestRefused as error:
                raise ValidationError(str(error)) from error
        return url

    def clean_secret(self) -> str:
        """Generate a signing secret for a webhook that has none."""
        given = self.cleaned_data["secret"].strip() or self.instance.secret
        self.made_secret = not given
        return given or secrets.token_urlsafe(24)

    def clean(self) -> dict[str, Any]:
        """Check metrics whose subjects fire separately: only "above" is allowed, and 0 for unreachable brokers."""
        said = super().clean()
        metric = AlertMetric(said["metric"]) if "metric" in said else None
        if metric is not None and DESCRIPTIONS[metric].is_above_only and said.get("below"):
            self.add_error("below", f"{DESCRIPTIONS[metric].label} can only be used with “above”.")
        if metric is AlertMetric.AWAY and said.get("threshold", 0) >= 1:
            self.add_error("threshold", "Each unreachable broker fires separately. Enter 0.")
        return said

    def rule(self) -> AlertCondition | None:
        """Return the rule alone, to try it; None while it makes no sense."""
        self.is_valid()
        if any(name in self.errors for name in _OF_RULE):
            return None
        said = self.cleaned_data
        return AlertCondition(
            AlertMetric(said["metric"]), said["threshold"], said["pattern"], said["below"], said["hold"]
        )

    def rule_errors(self) -> list[str]:
        """Return the errors because of which the form describes no rule."""
        return [f"{name.capitalize()}: {error}" for name in _OF_RULE for error in self.errors.get(name, ())]
