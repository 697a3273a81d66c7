"""Define the settings of a broker besides its definitions, fixed at its start. Immutable, in ActiveMQ's terms."""

from __future__ import annotations

from dataclasses import dataclass

#: ActiveMQ's `maxSchedulerRepeatAllowed`.
MAX_SCHEDULER_REPEAT = 1000

#: Bytes of messages that clients send and the store does not hold yet, unless `memoryUsage` says otherwise; as much
#: again for open transactions.
DEFAULT_MEMORY = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class DiscardingSettings:
    """ActiveMQ's discardingDLQBrokerPlugin: which failed messages are dropped instead of being dead letters."""

    drop_all: bool = True
    drop_temporary_topics: bool = True
    drop_temporary_queues: bool = True
    drop_only: tuple[str, ...] = ()  #: regular expressions for the names of destinations
    report_interval: int = 1000  #: dropped messages after which a line is logged; 0: never


@dataclass(frozen=True, slots=True)
class SelectorCacheSettings:
    """ActiveMQ's virtualSelectorCacheBrokerPlugin: remember what consumers wanted, for virtual topics that ask."""

    single_selector_per_destination: bool = False
    ignore_wildcard_selectors: bool = False
    persist_interval: int = 600_000  #: milliseconds
    expire_after: int = 0  #: milliseconds without use after which an entry is forgotten; 0: never


@dataclass(frozen=True, slots=True)
class TimestampSettings:
    """ActiveMQ's timeStampingBrokerPlugin: the broker's clock counts, not the client's. Milliseconds."""

    zero_expiration_override: int = 0  #: how long a message lives that would never expire; 0: for ever
    ttl_ceiling: int = 0  #: how long any message lives at most; 0: as long as the client wishes
    future_only: bool = False  #: no expiry comes earlier than the client said


@dataclass(frozen=True, slots=True)
class Settings:
    """Switches and limits of the whole broker, with the defaults of a Sluice that no XML file describes."""

    scheduler_support: bool = True  #: honour AMQ_SCHEDULED_* headers (ActiveMQ: only where the file says so)
    max_scheduler_repeat_allowed: int = MAX_SCHEDULER_REPEAT  #: AMQ_SCHEDULED_REPEAT is not above it
    advisory_support: bool = True  #: publish to ActiveMQ.Advisory.*
    use_virtual_dest_subs: bool = False  #: bridges are told who gets what is sent to virtual destinations ...
    use_virtual_dest_subs_on_creation: bool = False  #: ... queues and durable subscriptions without consumers, too
    statistics: bool = False  #: answer requests for numbers (ActiveMQ: statisticsBrokerPlugin)
    max_uncommitted_count: int = 0  #: messages and acks in one transaction; 0: what the broker bears, see client.py
    discarding: DiscardingSettings | None = None
    populate_jmsx_user_id: bool = False  #: each message says in JMSXUserID who sent it: the login of its CONNECT ...
    use_authenticated_principal: bool = False  #: ... or the name under which the broker knows that client
    memory_limit: int = 0  #: bytes of messages the node holds before the store does, see quotas.py; 0: the default
    send_fail_if_no_space: bool = False  #: a send that finds no room is refused rather than held back
    send_fail_if_no_space_after_timeout: int = 0  #: it is refused when it was held back so long, milliseconds; 0: never
    reject_durable_consumers: bool = False  #: nobody makes or consumes durable subscriptions
    keep_durable_subs_active: bool = True  #: durable subscriptions keep non-persistent messages too while offline
    offline_durable_subscriber_timeout: int = -1  #: those offline for so many milliseconds go; not above 0: never
    offline_durable_subscriber_task_schedule: int = 300_000  #: milliseconds between looks for such
    force_persistency: bool | None = None  #: every message is persistent, or none is; None: as its sender has it
    time_stamping: TimestampSettings | None = None  #: None: the client's timestamp and expiry count
    schedule_period_for_destination_purge: int = 0  #: milliseconds between looks for inactive destinations; 0: none
    max_purged_destinations_per_sweep: int = 0  #: of those, removed at once; 0: any number
    delete_all_messages_on_startup: bool = False  #: begin with an empty store
    auto_destroy_after: int = 0  #: auto-created destinations nobody used for so long go, milliseconds; 0: none does
    reconnect_window: int = 50_000  #: how long clients that may reconnect are waited for, unless they say, milliseconds
    bridge_groups: frozenset[str] | None = None  #: who may be a bridge of another broker; None: see bridge_clients.py
    selector_cache: SelectorCacheSettings | None = None  #: None: former consumers' selectors are not remembered

    @property
    def keeps_messages(self) -> bool:
        """Whether messages are to be there after a start."""
        return not self.delete_all_messages_on_startup


DEFAULT_SETTINGS = Settings()
