"""Forms of the routing page: what was typed -> a definition, with an error beside every field that cannot be."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from django import forms
from django.http import QueryDict

from brokerapp.definitions import Composite, Leg, MirroredQueue, VirtualDestination, VirtualTopic
from brokerapp.destination import NAMED_KINDS, Destination, Kind, is_pattern
from brokerapp.errors import SelectorSyntaxError
from brokerapp.selectors import compile_selector

#: What an option is called in ActiveMQ's files, and what it does.
OPTIONS: dict[str, tuple[str, str]] = {
    "selector_aware": (
        "selectorAware",
        "A consumer queue gets only what at least one selector of its present consumers matches. Without consumers it "
        "gets nothing.",
    ),
    "local": ("local", "Messages that came from another broker of the network are not copied."),
    "concurrent_send": ("concurrentSend", "Kept for ActiveMQ's files. Copies always go out together here."),
    "transacted_send": ("transactedSend", "Kept for ActiveMQ's files. Here all copies are stored, or none, always."),
    "drop_on_resource_limit": (
        "dropOnResourceLimit",
        "A consumer queue that is full loses its copy, which is counted, instead of holding the producer back.",
    ),
    "set_original_destination": (
        "setOriginalDestination",
        "Each copy says which queue it went to. Without, it says the topic, and a retry from the dead-letter queue "
        "fans out again.",
    ),
    "forward_only": ("forwardOnly", "The composite itself keeps nothing: messages only go to its targets."),
    "send_when_not_matched": (
        "sendWhenNotMatched",
        "What no target's selector matches stays in the composite itself.",
    ),
    "copy_message": ("copyMessage", "Each target gets a copy of its own, which carries its own destination."),
    "temporary": ("temporary", "Temporary queues are mirrored too."),
    "strict": (
        "strict",
        "The selectors take text for text only, as ActiveMQ's filters do: `n = 5` does not match a header `n:5`.",
    ),
}


class _DefinitionForm(forms.Form):
    """A form over the fields of one kind of definition; booleans become options with their explanation."""

    record: type

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for each in fields(self.record):
            if isinstance(each.default, bool):
                label, help_text = OPTIONS[each.name]
                field = forms.BooleanField(required=False, initial=each.default, label=label, help_text=help_text)
                field.default = each.default
                self.fields[each.name] = field

    @property
    def texts(self) -> list[forms.BoundField]:
        """The fields one types into."""
        return [self[name] for name, each in self.fields.items() if not isinstance(each, forms.BooleanField)]

    @property
    def options(self) -> list[tuple[forms.BoundField, bool]]:
        """The switches, each with its default."""
        return [
            (self[name], each.default) for name, each in self.fields.items() if isinstance(each, forms.BooleanField)
        ]


def _text(label: str, help_text: str, initial: str = "", *, required: bool = True) -> forms.CharField:
    widget = forms.TextInput(attrs={"class": "mono", "autocomplete": "off", "spellcheck": "false"})
    # Blanks are part of no name: stripping them is what the broker would do.
    return forms.CharField(
        label=label, help_text=help_text, initial=initial, required=required, max_length=500, widget=widget
    )


class VirtualTopicForm(_DefinitionForm):
    """A virtual topic."""

    record = VirtualTopic
    name = _text("Topics", "A name, or a pattern: * is one element, > at the end any number.", "VirtualTopic.>")
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
class LegRow:
    """One target of a composite as it was typed."""

    kind: str = "queue"
    name: str = ""
    selector: str = ""
    name_error: str = ""
    selector_error: str = ""

    @property
    def is_blank(self) -> bool:
        """Whether nothing was typed, so that the row does not count."""
        return not self.name and not self.selector

    def check(self) -> bool:
        """Whether it is a target; otherwise its errors say why not."""
        if not self.name:
            self.name_error = "A target needs a name."
        elif is_pattern(self.name):
            self.name_error = "A target is one destination, not a pattern."
        if self.selector:
            try:
                compile_selector(self.selector)
            except SelectorSyntaxError as wrong:
                self.selector_error = f"At position {wrong.position}: {wrong.reason}"
        return not self.name_error and not self.selector_error

    def leg(self) -> Leg:
        """The leg that a valid row describes."""
        return Leg(Destination(Kind(self.kind), self.name), self.selector or None)


class CompositeForm(_DefinitionForm):
    """A composite queue or topic with its targets, which come as three lists of equal length."""

    record = Composite
    name = _text("Name", "Messages sent here go to the targets.")

    def __init__(self, kind: Kind, *args: Any, legs: list[LegRow] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind = kind
        self.legs = legs if legs is not None else (_rows(self.data) if self.is_bound else [LegRow(), LegRow()])
        self.legs_error = ""

    def clean(self) -> dict[str, Any]:
        """Targets are checked with the rest; at least one must be left."""
        rows = [row for row in self.legs if not row.is_blank]
        are_good = [row.check() for row in rows]  # every row, so that every error shows
        if not rows:
            self.legs_error = "Add a target: a composite without any would lose what is sent to it."
        if self.legs_error or not all(are_good):
            raise forms.ValidationError(self.legs_error or "A target is not right yet.")
        return self.cleaned_data

    def definition(self) -> Composite:
        """The definition that a valid form describes."""
        values = dict(self.cleaned_data)
        legs = tuple(row.leg() for row in self.legs if not row.is_blank)
        return Composite(Destination(self.kind, values.pop("name")), legs, **values)


def _rows(data: QueryDict) -> list[LegRow]:
    columns = (data.getlist("leg_kind"), data.getlist("leg_name"), data.getlist("leg_selector"))
    return [
        LegRow(kind if kind in NAMED_KINDS else "queue", name.strip(), selector.strip())
        for kind, name, selector in zip(*columns, strict=False)
    ]


#: Kinds of definitions: what the page calls them, what they do in a line.
KINDS: dict[str, tuple[str, str]] = {
    "virtualTopic": ("Virtual topic", "Copies what is sent to a topic to a queue for each application that wants it."),
    "compositeQueue": ("Composite queue", "Sends what arrives at a queue on to several targets, each with its filter."),
    "compositeTopic": ("Composite topic", "Sends what arrives at a topic on to several targets, each with its filter."),
    "mirroredQueue": ("Mirrored queue", "Shows every message of every queue on a topic too, for those who watch."),
}


def form_for(kind: str, data: QueryDict | None = None, existing: VirtualDestination | None = None) -> _DefinitionForm:
    """The form of a kind: bound to what was typed, or filled from a definition, or with the defaults."""
    match kind, existing:
        case "virtualTopic", _:
            return VirtualTopicForm(data, initial=_initial(existing))
        case "mirroredQueue", _:
            return MirroredQueueForm(data, initial=_initial(existing))
        case _, Composite():
            legs = [LegRow(leg.destination.kind, leg.destination.name, leg.selector or "") for leg in existing.legs]
            initial = _initial(existing) | {"name": existing.destination.name}
            return CompositeForm(existing.destination.kind, data, initial=initial, legs=None if data else legs)
    return CompositeForm(Kind.QUEUE if kind == "compositeQueue" else Kind.TOPIC, data)


def _initial(existing: VirtualDestination | None) -> dict[str, Any]:
    return {each.name: getattr(existing, each.name) for each in fields(existing)} if existing else {}
