"""Define what an operator declares: immutable values with ActiveMQ Classic's defaults.

They are versioned as a whole (`Definitions.version`) and live in the store; `engine/routing_table.py` compiles them,
and
`definition_codec.py` has their JSON form.
"""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.model.destination import Destination
from brokerapp.model.policy_strategies import (
    MessageEviction,
    NetworkBridgeFilter,
    PendingMessageLimit,
    SlowConsumerStrategy,
)


@dataclass(frozen=True, slots=True)
class VirtualTopic:
    """Topics matching `name` copy each message to the existing queues matching `prefix + topic + postfix`."""

    name: str = ">"
    prefix: str = "Consumer.*."
    postfix: str = ""
    selector_aware: bool = False
    local: bool = False
    concurrent_send: bool = False
    transacted_send: bool = False
    drop_on_resource_limit: bool = False
    set_original_destination: bool = True

    kind = "virtualTopic"

    @property
    def id(self) -> str:
        """Return the id that identifies this definition among all others."""
        return f"{self.kind}:{self.name}|{self.prefix}|{self.postfix}"

    @property
    def called(self) -> str:
        """Return the name of this definition in texts for users."""
        return f"virtual topic {self.name}"


@dataclass(frozen=True, slots=True)
class ForwardTarget:
    """One entry of a composite's forwardTo. With a selector it is a filtered destination."""

    destination: Destination
    selector: str | None = None


@dataclass(frozen=True, slots=True)
class CompositeDestination:
    """A compositeQueue or compositeTopic: a message to `destination` is forwarded to the legs it matches.

    `strict`: its legs' selectors take text headers for text only, as ActiveMQ's filters do (not part of its XML).
    """

    destination: Destination
    legs: tuple[ForwardTarget, ...] = ()
    forward_only: bool = True
    send_when_not_matched: bool = False
    concurrent_send: bool = False
    copy_message: bool = True
    strict: bool = False

    @property
    def kind(self) -> str:
        """The element name ActiveMQ gives it."""
        return "compositeQueue" if self.destination.is_queue else "compositeTopic"

    @property
    def id(self) -> str:
        """Return the id that identifies this definition among all others."""
        return f"{self.kind}:{self.destination.name}"

    @property
    def called(self) -> str:
        """Return the name of this definition in texts for users."""
        return f"composite {self.destination.kind} {self.destination.name}"


@dataclass(frozen=True, slots=True)
class MirroredQueue:
    """Every message sent to a queue Q also goes to the topic `prefix + Q + postfix`."""

    prefix: str = "VirtualTopic.Mirror."
    postfix: str = ""
    copy_message: bool = True
    temporary: bool = True  #: temporary queues are mirrored too

    kind = "mirroredQueue"

    @property
    def id(self) -> str:
        """Return the id that identifies this definition among all others."""
        return self.kind

    @property
    def called(self) -> str:
        """Return the name of this definition in texts for users."""
        return "mirroring of every queue"


VirtualDestination = VirtualTopic | CompositeDestination | MirroredQueue

#: What ActiveMQ declares when a configuration says nothing about virtual destinations.
DEFAULT_VIRTUAL_TOPIC = VirtualTopic(name="VirtualTopic.>")


@dataclass(frozen=True, slots=True)
class DeadLetterStrategy:
    """Where failed messages of a destination go: `shared`, `individual` or `discarding`."""

    kind: str = "shared"
    dead_letter_queue: str = "ActiveMQ.DLQ"
    queue_prefix: str = "ActiveMQ.DLQ.Queue."
    topic_prefix: str = "ActiveMQ.DLQ.Topic."
    queue_suffix: str = ""
    topic_suffix: str = ""
    use_queue_for_queue_messages: bool = True
    use_queue_for_topic_messages: bool = True
    destination_per_durable_subscriber: bool = False
    process_expired: bool = True
    process_non_persistent: bool = False
    enable_audit: bool = True
    expiration: int = 0


@dataclass(frozen=True, slots=True)
class RecoveryPolicy:
    """Policy of the messages that a topic retains for retroactive consumers.

    `none`, `lastImage`, `fixedCount` (messages), `fixedSized` (bytes) or `timed` (milliseconds). None: the default.
    """

    kind: str
    maximum_size: int | None = None
    recover_duration: int | None = None


#: The cursor of ActiveMQ that holds all messages of a queue in memory, so that memoryLimit bounds it.
VM_CURSOR = "vmQueueCursor"


#: Fewer messages than one in so many say nothing.
MOST_ONE_IN = 1_000_000


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """Policy of the destinations matching `destination` (a pattern); the most specific entry wins.

    `options` holds the other attributes of ActiveMQ's policyEntry as written, under their own names, so that none is
    lost on export; those the broker honours have fields here. Sizes are bytes, times milliseconds; None: the default.
    """

    destination: Destination
    dead_letter: DeadLetterStrategy | None = None
    queue_prefetch: int | None = None
    topic_prefetch: int | None = None
    memory_limit: int | None = None
    send_fail_if_no_space: bool | None = None
    producer_flow_control: bool | None = None
    send_fail_if_no_space_after_timeout: int | None = None
    blocked_producer_warning_interval: int | None = None
    store_limit: int | None = None  #: of each queue, and of each named subscription of a topic
    queue_cursor: str | None = None  #: ActiveMQ's pendingQueuePolicy: the name of an element
    pending_message_limit: PendingMessageLimit | None = None
    message_eviction: MessageEviction | None = None
    slow_consumer: SlowConsumerStrategy | None = None
    network_bridge_filter: NetworkBridgeFilter | None = None  #: of queues
    durable_topic_prefetch: int | None = None
    gc_inactive_destinations: bool | None = None  #: those that nobody uses are removed
    inactive_timeout_before_gc: int | None = None  #: when they were idle for so long
    max_destinations: int | None = None  #: that may match the pattern; below 0: any number
    force_persistency: bool | None = None  #: what is sent there is persistent, or is not; None: as its sender has it
    auto_create: bool | None = None  #: clients may bring them into being by naming them; False: operators only
    queue_browser_prefetch: int | None = None
    prioritized_messages: bool | None = None
    strict_order_dispatch: bool | None = None
    use_consumer_priority: bool | None = None
    all_consumers_exclusive_by_default: bool | None = None
    consumers_before_dispatch_starts: int | None = None
    time_before_dispatch_starts: int | None = None
    message_group_map_factory_type: str | None = None
    recovery: RecoveryPolicy | None = None
    always_retroactive: bool = False
    expire_messages_period: int | None = None  #: between two looks for expired messages nobody reads; 0: none
    max_expire_page_size: int | None = None  #: messages looked at in one step of that
    advisory_for_consumed: bool = False
    advisory_for_delivery: bool = False
    advisory_for_dispatched: bool = False
    advisory_for_discarding_messages: bool = False
    advisory_for_fast_producers: bool = False
    advisory_for_slow_consumers: bool = False
    advisory_when_full: bool = False
    send_advisory_if_no_consumers: bool = False
    include_body_for_advisory: bool = False
    #: Of what is sent there one message in so many is recorded with all that happens to it: 1: every one, 0: none.
    record_one_in: int | None = None
    record_properties: str | None = None  #: names of the properties that are recorded, with commas; None: all
    options: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        """Return the id that identifies this definition among all others."""
        return f"policyEntry:{self.destination}"

    @property
    def called(self) -> str:
        """Return the name of this definition in texts for users."""
        return f"policy of {self.destination}"


@dataclass(frozen=True, slots=True)
class RedeliveryPolicy:
    """Policy of the redelivery of messages that failed at destinations matching a pattern.

    Delays are milliseconds. ActiveMQ's names and defaults; -1 is no limit.
    """

    destination: Destination
    maximum_redeliveries: int = 6  #: after so many redeliveries a message that fails again is given up
    initial_redelivery_delay: int = 1000
    redelivery_delay: int = 1000
    use_exponential_back_off: bool = False
    back_off_multiplier: float = 5.0
    maximum_redelivery_delay: int = -1
    use_collision_avoidance: bool = False  #: delays differ at random, so that messages do not come back all at once
    collision_avoidance_percent: int = 15

    @property
    def id(self) -> str:
        """Return the id that identifies this policy among all others."""
        return f"redeliveryPolicy:{self.destination}"

    @property
    def called(self) -> str:
        """Return the name of this definition in texts for users."""
        return f"redelivery policy of {self.destination}"


@dataclass(frozen=True, slots=True)
class RedeliverySettings:
    """The redelivery policies, of which the most specific wins, and what becomes of messages none of them keeps."""

    policies: tuple[RedeliveryPolicy, ...] = ()
    send_to_dlq_if_max_retries_exceeded: bool = True  #: else they are dropped
    fallback_to_dead_letter: bool = True  #: what fails where no policy matches is a dead letter; else it is dropped


@dataclass(frozen=True, slots=True)
class Definitions:
    """All that is declared, at one version."""

    version: int = 0
    virtual_destinations: tuple[VirtualDestination, ...] = (DEFAULT_VIRTUAL_TOPIC,)
    policies: tuple[PolicyEntry, ...] = ()
    redelivery: RedeliverySettings = RedeliverySettings()

    @property
    def items(self) -> tuple[VirtualDestination | PolicyEntry | RedeliveryPolicy, ...]:
        """All that has an id of its own."""
        return (*self.virtual_destinations, *self.policies, *self.redelivery.policies)
