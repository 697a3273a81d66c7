"""Forms of the routing page: what was typed -> a definition, with an error beside every field that cannot be."""

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
    """An option that is on or off: what ActiveMQ calls it, the same as a sentence, and what it means."""

    name: str
    title: str
    explanation: str
    is_rare: bool = False  #: kept for ActiveMQ's files, or for few: the guided form tucks it away


OPTIONS: dict[str, OptionSwitch] = {
    "selector_aware": OptionSwitch(
        "selectorAware",
        "A queue gets only what its consumers select",
        "A copy is made when a selector of the queue's present consumers matches. While all are away it gets nothing, "
        "unless the broker remembers what they selected.",
    ),
    "local": OptionSwitch(
        "local", "Leave out what comes from other brokers", "Messages from the network are not copied.", is_rare=True
    ),
    "concurrent_send": OptionSwitch(
        "concurrentSend", "Send copies side by side", "For ActiveMQ's files. Copies always go out together here.",
        is_rare=True,
    ),
    "transacted_send": OptionSwitch(
        "transactedSend", "Store all copies or none", "For ActiveMQ's files. Here that is always so.", is_rare=True
    ),
    "drop_on_resource_limit": OptionSwitch(
        "dropOnResourceLimit",
        "Drop the copy for a queue that is full",
        "It is dropped and counted, instead of holding the producer back until there is room.",
    ),
    "set_original_destination": OptionSwitch(
        "setOriginalDestination",
        "Each copy says which queue it went to",
        "Without, it says the topic, and a retry from the dead-letter queue fans out to every consumer again.",
    ),
    "forward_only": OptionSwitch(
        "forwardOnly", "Only forward", "It keeps nothing itself: messages go to the targets and nowhere else."
    ),
    "send_when_not_matched": OptionSwitch(
        "sendWhenNotMatched", "Keep what no target matches", "What no target's selector matches stays here."
    ),
    "copy_message": OptionSwitch(
        "copyMessage", "A copy of its own for each target", "Each target's copy carries its own destination.",
        is_rare=True,
    ),
    "temporary": OptionSwitch("temporary", "Temporary queues too", "They are mirrored like all others."),
    "strict": OptionSwitch(
        "strict",
        "Selectors take text for text only",
        "As ActiveMQ's filters do: n = 5 does not match a header n:5.",
        is_rare=True,
    ),
}  # fmt: skip


class _DefinitionForm(forms.Form):
    """A form over the fields of one kind of definition; booleans become options with their explanation."""

    record: type
    is_policy = False
    is_composite = False

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
        """The fields one types into."""
        return [self[name] for name, each in self.fields.items() if not isinstance(each, forms.BooleanField)]

    @property
    def switches(self) -> list[tuple[forms.BoundField, OptionSwitch, bool]]:
        """The switches, each with its words and its default, the rare ones last."""
        found = [
            (self[name], each.switch, each.default)
            for name, each in self.fields.items()
            if isinstance(each, forms.BooleanField)
        ]
        return sorted(found, key=lambda option: option[1].is_rare)

    @property
    def destination_kind(self) -> DestinationKind:
        """The kind of what `name` names."""
        return DestinationKind.TOPIC

    def clean_name(self) -> str:
        """A name, or a pattern."""
        try:
            check_one(Destination(self.destination_kind, self.cleaned_data["name"]), or_pattern=True)
        except InvalidDestination as wrong:
            raise forms.ValidationError(str(wrong)) from wrong
        return self.cleaned_data["name"]

    def match_destinations(self, existing: Iterable[Destination]) -> list[MatchedDestinations]:
        """What is known while the form is not right yet."""
        name = getattr(self, "cleaned_data", {}).get("name")
        if self.record is not VirtualTopic or not name:
            return []
        topics = matching_topics(name, sorted(existing))
        return [MatchedDestinations("name", f"{pluralize_count(len(topics), 'existing topic')} so far", topics)]


def _text(
    label: str, help_text: str, initial: str = "", *, required: bool = True, example: str = ""
) -> forms.CharField:
    widget = forms.TextInput(
        attrs={"class": "mono", "autocomplete": "off", "spellcheck": "false", "placeholder": example}
    )
    # Blanks are part of no name: stripping them is what the broker would do.
    return forms.CharField(
        label=label, help_text=help_text, initial=initial, required=required, max_length=500, widget=widget
    )


class VirtualTopicForm(_DefinitionForm):
    """A virtual topic."""

    record = VirtualTopic
    name = _text(
        "Topics", "A name, or a pattern: * is one element, > at the end any number.", example="VirtualTopic.Orders.>"
    )
    prefix = _text(
        "Prefix of consumer queues",
        "Stands before the topic's name; * is the consumer's.",
        "Consumer.*.",
        required=False,
    )
    postfix = _text("Postfix", "Stands behind the topic's name. Mostly empty.", required=False)

    def clean(self) -> dict[str, Any]:
        """Without prefix and postfix the consumer queues would be nameless."""
        if not self.cleaned_data.get("prefix") and not self.cleaned_data.get("postfix"):
            self.add_error("prefix", "Give a prefix or a postfix: consumer queues must not have the topic's own name.")
        return self.cleaned_data

    def definition(self) -> VirtualTopic:
        """The definition that a valid form describes."""
        return VirtualTopic(**self.cleaned_data)


class MirroredQueueForm(_DefinitionForm):
    """The mirror of queues into topics."""

    record = MirroredQueue
    prefix = _text("Prefix of mirror topics", "Stands before the queue's name.", MirroredQueue().prefix, required=False)
    postfix = _text("Postfix", "Stands behind the queue's name. Mostly empty.", required=False)

    def clean(self) -> dict[str, Any]:
        """Without prefix and postfix a mirror would have the name of its queue."""
        if not self.cleaned_data.get("prefix") and not self.cleaned_data.get("postfix"):
            self.add_error("prefix", "Give a prefix or a postfix: mirror topics must not have the queue's own name.")
        return self.cleaned_data

    def definition(self) -> MirroredQueue:
        """The definition that a valid form describes."""
        return MirroredQueue(**self.cleaned_data)


@dataclass(slots=True)
class TargetRow:
    """One target of a composite as it was typed."""

    kind: str = "queue"
    name: str = ""
    selector: str = ""
    name_error: str = ""
    selector_error: SelectorSyntaxError | None = None

    @property
    def is_blank(self) -> bool:
        """Whether nothing was typed, so that the row does not count."""
        return not self.name and not self.selector

    def check(self) -> bool:
        """Whether it is a target; otherwise its errors say why not."""
        if not self.name:
            self.name_error = "A target needs a name."
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

    def leg(self) -> ForwardTarget:
        """The leg that a valid row describes."""
        return ForwardTarget(Destination(DestinationKind(self.kind), self.name), self.selector or None)


class CompositeForm(_DefinitionForm):
    """A composite queue or topic with its targets, which come as three lists of equal length."""

    record = CompositeDestination
    is_composite = True
    name = _text("Name", "Messages sent here go to the targets.", example="Orders.In")

    def __init__(self, kind: DestinationKind, *args: Any, legs: list[TargetRow] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind = kind
        self.legs = legs if legs is not None else (_rows(self.data) if self.is_bound else [TargetRow(), TargetRow()])
        self.legs_error = ""

    @property
    def destination_kind(self) -> DestinationKind:
        """The kind of what `name` names."""
        return self.kind

    def clean(self) -> dict[str, Any]:
        """Targets are checked with the rest; at least one must be left."""
        rows = [row for row in self.legs if not row.is_blank]
        are_good = [row.check() for row in rows]  # every row, so that every error shows
        if not rows:
            self.legs_error = "Add a target: a composite without any would lose what is sent to it."
        if self.legs_error or not all(are_good):
            raise forms.ValidationError(self.legs_error or "A target is not right yet.")
        return self.cleaned_data

    def definition(self) -> CompositeDestination:
        """The definition that a valid form describes."""
        values = dict(self.cleaned_data)
        legs = tuple(row.leg() for row in self.legs if not row.is_blank)
        return CompositeDestination(Destination(self.kind, values.pop("name")), legs, **values)


def _rows(data: QueryDict) -> list[TargetRow]:
    columns = (data.getlist("leg_kind"), data.getlist("leg_name"), data.getlist("leg_selector"))
    return [
        TargetRow(kind if kind in NAMED_KINDS else "queue", name.strip(), selector.strip())
        for kind, name, selector in zip(*columns, strict=False)
    ]


@dataclass(frozen=True, slots=True)
class DefinitionKind:
    """A kind of definition: what the pages call it, what it does in a line, and when one takes it."""

    label: str
    description: str
    use_when: str = ""
    is_card: bool = True  #: one of the four cards; policies have a page of their own


KINDS: dict[str, DefinitionKind] = {
    "virtualTopic": DefinitionKind(
        "Virtual topic",
        "Copies what is sent to a topic to a queue for each application that wants it.",
        "Several applications each need every message, and each shares its work among several consumers.",
    ),
    "compositeQueue": DefinitionKind(
        "Composite queue",
        "Sends what arrives at a queue on to several targets, each with its filter.",
        "Producers send to one queue, and who gets what is your decision.",
    ),
    "compositeTopic": DefinitionKind(
        "Composite topic",
        "Sends what arrives at a topic on to several targets, each with its filter.",
        "Some of what is published should also wait in queues, or go to other topics.",
    ),
    "mirroredQueue": DefinitionKind(
        "Mirrored queues",
        "Shows every message of every queue on a topic too.",
        "Somebody wants to watch the traffic of queues without taking part in it.",
    ),
    "policyEntry": DefinitionKind(
        "Destination policy",
        "What holds for all destinations that match a pattern: limits, dead letters, prefetch and more.",
        is_card=False,
    ),
    "redeliveryPolicy": DefinitionKind(
        "Redelivery policy", "How messages that failed are given out again, and how often.", is_card=False
    ),
    "redelivery": DefinitionKind(
        "Messages that are given up", "What becomes of messages that no redelivery policy keeps.", is_card=False
    ),
}


def form_for(kind: str, data: QueryDict | None = None, existing: Definition | None = None) -> Any:
    """The form of a kind: bound to what was typed, or filled from a definition, or with the defaults."""
    match kind, existing:
        case kind, _ if kind in FORMS:
            return FORMS[kind](data, existing)
        case "virtualTopic", _:
            return VirtualTopicForm(data, initial=_initial(existing))
        case "mirroredQueue", _:
            return MirroredQueueForm(data, initial=_initial(existing))
        case _, CompositeDestination():
            legs = [TargetRow(leg.destination.kind, leg.destination.name, leg.selector or "") for leg in existing.legs]
            initial = _initial(existing) | {"name": existing.destination.name}
            return CompositeForm(existing.destination.kind, data, initial=initial, legs=None if data else legs)
    return CompositeForm(DestinationKind.QUEUE if kind == "compositeQueue" else DestinationKind.TOPIC, data)


def _initial(existing: Definition | None) -> dict[str, Any]:
    return {each.name: getattr(existing, each.name) for each in fields(existing)} if existing else {}
