"""Forms of policies, generated from the table of their options; an empty field means the default."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from django import forms

from brokerapp.config.parsing.attributes import xml_spelling
from brokerapp.engine.dispatch.message_groups import parse_group_map
from brokerapp.errors import DefinitionRefused, InvalidDestination
from brokerapp.model.definitions import PolicyEntry, RedeliveryPolicy, RedeliverySettings
from brokerapp.model.destination import ANY_REST, Destination, DestinationKind
from console.routing.definitions.destination_matches import MatchedDestinations, match_pattern
from console.routing.editor.policy_options import NESTED, ONLY_FOR, PolicyOption, options_of

#: Destinations of a policy. Temporary destinations have one policy for all.
_KINDS = {
    DestinationKind.QUEUE: "queues",
    DestinationKind.TOPIC: "topics",
    DestinationKind.TEMP_QUEUE: "all temporary queues",
    DestinationKind.TEMP_TOPIC: "all temporary topics",
}
_TEMPORARY = (DestinationKind.TEMP_QUEUE, DestinationKind.TEMP_TOPIC)
#: Largest number that can be entered.
MAX_NUMBER = 10**15
#: Fields in which -1 means no limit.
_FROM_MINUS_ONE = ("maximum_redeliveries", "maximum_redelivery_delay")


@dataclass(frozen=True, slots=True)
class PolicySection:
    """A section of the form: fields with their options; `choice` selects the strategy, if there are several."""

    title: str
    rows: list[
        tuple[forms.BoundField, PolicyOption, str]
    ]  #: field, option, strategies that have it, separated by blanks
    choice: forms.BoundField | None = None

    @property
    def option_names(self) -> str:
        """Return the names of its options, separated by commas."""
        return ", ".join(option.name for _, option, _ in self.rows)

    @property
    def is_used(self) -> bool:
        """Return whether a field is set, so that the section is shown open."""
        if self.choice is not None:
            return bool(self.choice.value())
        return any(field.value() not in (None, "") or field.errors for field, _, _ in self.rows)


class _RecordForm(forms.Form):
    """A form with a field for each option of a record."""

    record: type
    is_policy = True

    def __init__(self, data: Any = None, existing: Any = None) -> None:
        super().__init__(data)
        self.existing = existing
        for option in options_of(self.record):
            self.fields[option.field] = _field_of(self.record, option, getattr(existing, option.field, None))

    @property
    def sections(self) -> list[PolicySection]:
        """Return the sections of the form."""
        return list(_sections(self, options_of(self.record)))

    def match_destinations(self, existing: Iterable[Destination]) -> list[MatchedDestinations]:
        """Find matching destinations while the form is not valid yet."""
        return []

    def _values(self, record: type, within: str = "") -> dict[str, Any]:
        return {
            option.field: value
            for option in options_of(record)
            if (value := self.cleaned_data.get(within + option.field)) not in (None, "")
        }


def _sections(form: forms.Form, options: Iterable[PolicyOption]) -> Iterator[PolicySection]:
    by_title: dict[str, list[PolicyOption]] = {}
    for option in options:
        by_title.setdefault(option.section, []).append(option)
    for title, rows in by_title.items():
        yield PolicySection(title, [(form[each.field], each, "") for each in rows])


def _field_of(record: type, option: PolicyOption, value: Any) -> forms.Field:
    """Create the field of an option; empty if the value is the default."""
    each = next(field for field in fields(record) if field.name == option.field)
    initial = None if value == each.default else value
    common = {"required": False, "label": option.name, "help_text": option.explanation}
    if "bool" in each.type:
        default = option.default or "off"
        choices = [("", f"default ({default})"), ("true", "on"), ("false", "off")]
        said = "" if initial is None else str(initial).lower()
        return forms.TypedChoiceField(
            choices=choices, coerce=lambda text: text == "true", empty_value=None, initial=said, **common
        )
    if option.choices:
        choices = [("", f"default ({option.default})"), *((each, each) for each in option.choices)]
        return forms.ChoiceField(choices=choices, initial=initial, **common)
    attributes = {"placeholder": option.default, "autocomplete": "off"}
    if "int" in each.type:
        least = option.least if option.least is not None else -1
        most = option.most if option.most is not None else MAX_NUMBER
        return forms.IntegerField(
            min_value=least, max_value=most, initial=initial, widget=forms.NumberInput(attrs=attributes), **common
        )
    if "float" in each.type:
        widget = forms.NumberInput(attrs={**attributes, "step": "any"})
        return forms.FloatField(min_value=0, max_value=MAX_NUMBER, initial=initial, widget=widget, **common)
    widget = forms.TextInput(attrs={**attributes, "class": "mono", "spellcheck": "false"})
    return forms.CharField(max_length=500, initial=initial, widget=widget, **common)


class _PatternForm(_RecordForm):
    """The form of a policy for the destinations that match a pattern."""

    for_kind = forms.ChoiceField(label="Applies to", choices=[(str(kind), words) for kind, words in _KINDS.items()])
    name = forms.CharField(
        label="Name or pattern",
        max_length=1000,
        required=False,
        help_text="* is one element, > at the end any number.",
        widget=forms.TextInput(attrs={"class": "mono", "autocomplete": "off", "spellcheck": "false"}),
    )
    temporary = True

    def __init__(self, data: Any = None, existing: Any = None) -> None:
        super().__init__(data, existing)
        if not self.temporary:
            self.fields["for_kind"].choices = [(str(k), words) for k, words in _KINDS.items() if k not in _TEMPORARY]
        if existing is not None:
            self.initial |= {"for_kind": str(existing.destination.kind), "name": existing.destination.name}

    def clean_name(self) -> str:
        """Check that the broker accepts the pattern of a policy."""
        kind = (
            DestinationKind(self.data.get("for_kind", DestinationKind.QUEUE))
            if self.data.get("for_kind") in list(DestinationKind)
            else DestinationKind.QUEUE
        )
        name = self.cleaned_data["name"].strip()
        if kind in _TEMPORARY:
            return ANY_REST
        if not name:
            raise forms.ValidationError("Enter a name or a pattern; > matches all.")
        try:
            Destination.parse(f"{kind}://{name}")
        except InvalidDestination as wrong:
            raise forms.ValidationError(str(wrong)) from wrong
        return name

    @property
    def destination(self) -> Destination:
        """Return the destination or pattern of the policy."""
        return Destination(DestinationKind(self.cleaned_data["for_kind"]), self.cleaned_data["name"])

    def match_destinations(self, existing: Iterable[Destination]) -> list[MatchedDestinations]:
        """Find the destinations that match the pattern."""
        cleaned = getattr(self, "cleaned_data", {})
        return [match_pattern(self.destination, existing)] if cleaned.get("name") and cleaned.get("for_kind") else []


class PolicyForm(_PatternForm):
    """The form of a destination policy."""

    record = PolicyEntry

    def __init__(self, data: Any = None, existing: PolicyEntry | None = None) -> None:
        super().__init__(data, existing)
        for name, (title, record, kinds) in NESTED.items():
            held = getattr(existing, name, None)
            choices = [("", "Default"), *kinds.items()]
            initial = held.kind if held is not None else ""
            self.fields[name] = forms.ChoiceField(label=title, choices=choices, required=False, initial=initial)
            for option in options_of(record):
                value = getattr(held, option.field, None) if held is not None else None
                self.fields[f"{name}.{option.field}"] = _field_of(record, option, value)

    @property
    def sections(self) -> list[PolicySection]:
        """Return the sections of the form, including the strategies."""
        found = list(_sections(self, options_of(PolicyEntry)))
        for name, (title, record, kinds) in NESTED.items():
            rows = [
                (self[f"{name}.{each.field}"], each, " ".join(ONLY_FOR.get((name, each.field), kinds)))
                for each in options_of(record)
            ]
            found.append(PolicySection(title, rows, self[name]))
        return found

    def clean_message_group_map_factory_type(self) -> str:
        """Check the value as the broker reads it."""
        text = self.cleaned_data["message_group_map_factory_type"]
        try:
            parse_group_map(text)
        except DefinitionRefused as wrong:
            raise forms.ValidationError(str(wrong)) from wrong
        return text

    def definition(self) -> PolicyEntry:
        """Return the policy that a valid form describes."""
        nested = {name: self._nested(name) for name in NESTED}
        options = self.existing.options if self.existing is not None else ()
        return PolicyEntry(self.destination, options=options, **self._values(PolicyEntry), **nested)

    def _nested(self, name: str) -> Any:
        kind, record = self.cleaned_data.get(name), NESTED[name][1]
        if not kind:
            return None
        values = {
            field: value
            for field, value in self._values(record, f"{name}.").items()
            if kind in ONLY_FOR.get((name, field), (kind,))
        }
        return record(kind=kind, **values)


class RedeliveryForm(_PatternForm):
    """The form of a redelivery policy."""

    record = RedeliveryPolicy
    temporary = False

    def definition(self) -> RedeliveryPolicy:
        """Return the policy that a valid form describes."""
        return RedeliveryPolicy(self.destination, **self._values(RedeliveryPolicy))

    def clean(self) -> dict[str, Any]:
        """Reject negative numbers, except -1 where it means no limit."""
        for name, value in self.cleaned_data.items():
            if isinstance(value, int) and value < 0 and name not in _FROM_MINUS_ONE:
                self.add_error(name, f"{xml_spelling(name)} must be 0 or greater.")
        return self.cleaned_data


class SwitchesForm(_RecordForm):
    """The form of the settings for undeliverable messages."""

    record = RedeliverySettings

    def definition(self) -> RedeliverySettings:
        """Return the settings that a valid form describes."""
        return replace(RedeliverySettings(), **self._values(RedeliverySettings))


#: Kind -> its form.
FORMS: Mapping[str, type[_RecordForm]] = {
    "policyEntry": PolicyForm,
    "redeliveryPolicy": RedeliveryForm,
    "redelivery": SwitchesForm,
}
