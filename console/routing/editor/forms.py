"""Forms of definitions: read what was entered, with an error beside each invalid field."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from django import forms
from django.http import QueryDict

from brokerapp.errors import InvalidDestination, SelectorSyntaxError
from brokerapp.model.definitions import CompositeDestination, ForwardTarget, MirroredQueue, VirtualTopic
from brokerapp.model.destination import NAMED_KINDS, Destination, DestinationKind, check_one
from brokerapp.selectors import compile_selector
from console.routing.definitions.changes import Definition
from console.routing.definitions.destination_matches import MatchedDestinations, matching_topics
from console.routing.editor.policy_forms import FORMS
from console.ui.formatting.number_format import pluralize_count


@dataclass(frozen=True, slots=True)
class OptionSwitch:
    """An option that is on or off: its name in ActiveMQ, a title and an explanation."""

    name: str
    title: str
    explanation: str
    is_rare: bool = False  #: shown in the expert form only


OPTIONS: dict[str, OptionSwitch] = {
    "selector_aware": OptionSwitch(
        "selectorAware",
        "Copy only what consumers select",
        "A queue gets a copy when a selector of its online consumers matches. Without consumers it gets nothing, "
        "unless the broker caches their selectors.",
    ),
    "local": OptionSwitch(
        "local", "Local messages only", "Messages from other brokers are not copied.", is_rare=True
    ),
    "concurrent_send": OptionSwitch(
        "concurrentSend", "Send copies concurrently", "No effect: always the case. Kept for ActiveMQ files.",
        is_rare=True,
    ),
    "transacted_send": OptionSwitch(
        "transactedSend", "Store all copies or none", "No effect: always the case. Kept for ActiveMQ files.",
        is_rare=True,
    ),
    "drop_on_resource_limit": OptionSwitch(
        "dropOnResourceLimit",
        "Drop copies for full queues",
        "Copies for a full queue are dropped and counted, instead of blocking the producer.",
    ),
    "set_original_destination": OptionSwitch(
        "setOriginalDestination",
        "Set original destination",
        "Each copy has its queue as original destination. Otherwise a resubmitted dead letter "
        "goes to all consumers again.",
    ),
    "forward_only": OptionSwitch(
        "forwardOnly", "Forward only (no local copy)", "Messages are forwarded to the targets and not stored here."
    ),
    "send_when_not_matched": OptionSwitch(
        "sendWhenNotMatched", "Keep unmatched messages", "Messages that no target selects are stored here."
    ),
    "copy_message": OptionSwitch(
        "copyMessage", "Separate copy per target", "Each copy has its target as destination.",
        is_rare=True,
    ),
    "temporary": OptionSwitch("temporary", "Include temporary queues", "Temporary queues are mirrored, too."),
    "strict": OptionSwitch(
        "strict",
        "Strict selector types",
        "Text headers are not converted to numbers: n = 5 does not match a header n:5.",
        is_rare=True,
    ),
}  # fmt: skip


class _DefinitionForm(forms.Form):
    """A form over the fields of one kind of definition; booleans become options with their explanation."""

    record: type
    is_policy = False
    is_composite = False
    source_title = "Source"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for each in fields(self.record):
            if isinstance(each.default, bool):
                switch = OPTIONS[each.name]
                field = forms.BooleanField(required=False, initial=each.default, label=switch.name)
                field.default, field.switch = each.default, switch
                self.fields[each.name] = field

    @property
    def text_fields(self) -> list[forms.BoundField]:
        """Return the text fields."""
        return [self[name] for name, each in self.fields.items() if not isinstance(each, forms.BooleanField)]

    @property
    def switches(self) -> list[tuple[forms.BoundField, OptionSwitch, bool]]:
        """Return the switches with their explanation and default, rare ones last."""
        found = [
            (self[name], each.switch, each.default)
            for name, each in self.fields.items()
            if isinstance(each, forms.BooleanField)
        ]
        return sorted(found, key=lambda option: option[1].is_rare)

    @property
    def destination_kind(self) -> DestinationKind:
        """Return the kind of destination that the field `name` names."""
        return DestinationKind.TOPIC

    def clean_name(self) -> str:
        """Check that the name is a valid name or pattern."""
        try:
            check_one(Destination(self.destination_kind, self.cleaned_data["name"]), or_pattern=True)
        except InvalidDestination as wrong:
            raise forms.ValidationError(str(wrong)) from wrong
        return self.cleaned_data["name"]

    def match_destinations(self, existing: Iterable[Destination]) -> list[MatchedDestinations]:
        """Find matching destinations while the form is not valid yet."""
        name = getattr(self, "cleaned_data", {}).get("name")
        if self.record is not VirtualTopic or not name:
            return []
        topics = matching_topics(name, sorted(existing))
        return [MatchedDestinations("name", f"{pluralize_count(len(topics), 'existing topic')} match", topics)]


def _text(
    label: str, help_text: str, initial: str = "", *, required: bool = True, example: str = ""
) -> forms.CharField:
    widget = forms.TextInput(
        attrs={"class": "mono", "autocomplete": "off", "spellcheck": "false", "placeholder": example}
    )
    # Names contain no blanks: the broker would strip them, too.
    return forms.CharField(
        label=label, help_text=help_text, initial=initial, required=required, max_length=500, widget=widget
    )


class VirtualTopicForm(_DefinitionForm):
    """The form of a virtual topic."""

    record = VirtualTopic
    source_title = "Topics and consumer queues"
    name = _text(
        "Topics", "A name or a pattern: * is one element, > at the end any number.", example="VirtualTopic.Orders.>"
    )
    prefix = _text(
        "Consumer queue prefix",
        "Precedes the topic name; * is the consumer's name.",
        "Consumer.*.",
        required=False,
    )
    postfix = _text("Postfix", "Follows the topic name. Usually empty.", required=False)

    def clean(self) -> dict[str, Any]:
        """Require a prefix or postfix: otherwise consumer queues would have the topic's name."""
        if not self.cleaned_data.get("prefix") and not self.cleaned_data.get("postfix"):
            self.add_error("prefix", "Enter a prefix or a postfix: consumer queues cannot have the topic's name.")
        return self.cleaned_data

    def definition(self) -> VirtualTopic:
        """Return the definition that a valid form describes."""
        return VirtualTopic(**self.cleaned_data)


class MirroredQueueForm(_DefinitionForm):
    """The form of mirrored queues."""

    record = MirroredQueue
    source_title = "Mirror topics"
    prefix = _text("Mirror topic prefix", "Precedes the queue name.", MirroredQueue().prefix, required=False)
    postfix = _text("Postfix", "Follows the queue name. Usually empty.", required=False)

    def clean(self) -> dict[str, Any]:
        """Require a prefix or postfix: otherwise a mirror topic would have the queue's name."""
        if not self.cleaned_data.get("prefix") and not self.cleaned_data.get("postfix"):
            self.add_error("prefix", "Enter a prefix or a postfix: mirror topics cannot have the queue's name.")
        return self.cleaned_data

    def definition(self) -> MirroredQueue:
        """Return the definition that a valid form describes."""
        return MirroredQueue(**self.cleaned_data)


@dataclass(slots=True)
class TargetRow:
    """One target of a composite destination as entered."""

    kind: str = "queue"
    name: str = ""
    selector: str = ""
    name_error: str = ""
    selector_error: SelectorSyntaxError | None = None

    @property
    def is_blank(self) -> bool:
        """Return whether nothing was entered."""
        return not self.name and not self.selector

    def check(self) -> bool:
        """Check the row: false if it is invalid, see its errors."""
        if not self.name:
            self.name_error = "Enter a target name."
        else:
            try:
                Destination.named(DestinationKind(self.kind), self.name)
            except InvalidDestination as wrong:
                self.name_error = str(wrong)
        if self.selector:
            try:
                compile_selector(self.selector)
            except SelectorSyntaxError as wrong:
                self.selector_error = wrong
        return not self.name_error and not self.selector_error

    def forward_target(self) -> ForwardTarget:
        """Return the target that a valid row describes."""
        return ForwardTarget(Destination(DestinationKind(self.kind), self.name), self.selector or None)


class CompositeForm(_DefinitionForm):
    """The form of a composite queue or topic. Its targets come as three lists of equal length."""

    record = CompositeDestination
    is_composite = True
    name = _text("Name", "Messages sent here are forwarded to the targets.", example="Orders.In")

    def __init__(
        self, kind: DestinationKind, *args: Any, targets: list[TargetRow] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.kind = kind
        self.targets = (
            targets if targets is not None else (_rows(self.data) if self.is_bound else [TargetRow(), TargetRow()])
        )
        self.targets_error = ""

    @property
    def destination_kind(self) -> DestinationKind:
        """Return the kind of destination that the field `name` names."""
        return self.kind

    def clean(self) -> dict[str, Any]:
        """Check the targets; at least one is required."""
        rows = [row for row in self.targets if not row.is_blank]
        are_good = [row.check() for row in rows]  # every row, so that every error shows
        if not rows:
            self.targets_error = "Add a target: without one, messages would be lost."
        if self.targets_error or not all(are_good):
            raise forms.ValidationError(self.targets_error or "A target is invalid.")
        return self.cleaned_data

    def definition(self) -> CompositeDestination:
        """Return the definition that a valid form describes."""
        values = dict(self.cleaned_data)
        targets = tuple(row.forward_target() for row in self.targets if not row.is_blank)
        return CompositeDestination(Destination(self.kind, values.pop("name")), targets, **values)


def _rows(data: QueryDict) -> list[TargetRow]:
    columns = (data.getlist("target_kind"), data.getlist("target_name"), data.getlist("target_selector"))
    return [
        TargetRow(kind if kind in NAMED_KINDS else "queue", name.strip(), selector.strip())
        for kind, name, selector in zip(*columns, strict=False)
    ]


@dataclass(frozen=True, slots=True)
class DefinitionKind:
    """A kind of definition: its label, a description, and when to use it."""

    label: str
    description: str
    use_when: str = ""
    is_card: bool = True  #: one of the four cards; policies have a page of their own


KINDS: dict[str, DefinitionKind] = {
    "virtualTopic": DefinitionKind(
        "Virtual topic",
        "Copies messages of a topic to one queue per consuming application.",
        "Several applications each need every message and share the work among their consumers.",
    ),
    "compositeQueue": DefinitionKind(
        "Composite queue",
        "Forwards messages of a queue to several targets, each with an optional selector.",
        "Producers send to one queue and the broker distributes the messages.",
    ),
    "compositeTopic": DefinitionKind(
        "Composite topic",
        "Forwards messages of a topic to several targets, each with an optional selector.",
        "Published messages should also be stored in queues or go to other topics.",
    ),
    "mirroredQueue": DefinitionKind(
        "Mirrored queues",
        "Copies every message of every queue to a topic.",
        "You want to monitor queue traffic without consuming it.",
    ),
    "policyEntry": DefinitionKind(
        "Destination policy",
        "Settings of all destinations that match a pattern: limits, dead letters, prefetch and more.",
        is_card=False,
    ),
    "redeliveryPolicy": DefinitionKind(
        "Redelivery policy", "How often and when failed messages are redelivered.", is_card=False
    ),
    "redelivery": DefinitionKind(
        "Undeliverable messages", "What happens to messages whose redelivery attempts are exhausted.", is_card=False
    ),
}


def form_for(kind: str, data: QueryDict | None = None, existing: Definition | None = None) -> Any:
    """Create the form of a kind: bound to submitted data, filled from a definition, or with the defaults."""
    match kind, existing:
        case kind, _ if kind in FORMS:
            return FORMS[kind](data, existing)
        case "virtualTopic", _:
            return VirtualTopicForm(data, initial=_initial(existing))
        case "mirroredQueue", _:
            return MirroredQueueForm(data, initial=_initial(existing))
        case _, CompositeDestination():
            targets = [
                TargetRow(leg.destination.kind, leg.destination.name, leg.selector or "") for leg in existing.legs
            ]
            initial = _initial(existing) | {"name": existing.destination.name}
            return CompositeForm(existing.destination.kind, data, initial=initial, targets=None if data else targets)
    return CompositeForm(DestinationKind.QUEUE if kind == "compositeQueue" else DestinationKind.TOPIC, data)


def _initial(existing: Definition | None) -> dict[str, Any]:
    return {each.name: getattr(existing, each.name) for each in fields(existing)} if existing else {}
