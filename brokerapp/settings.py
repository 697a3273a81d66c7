"""Settings: what a broker is told once, when it starts, beyond its definitions. Immutable, in ActiveMQ's terms."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Switches and limits of the whole broker, with the defaults of a Sluice that no XML file describes."""

    scheduler_support: bool = True  #: honour AMQ_SCHEDULED_* headers (ActiveMQ: only where the file says so)
    advisory_support: bool = True  #: publish to ActiveMQ.Advisory.*
    populate_jmsx_user_id: bool = False  #: each message says in JMSXUserID who sent it: the login of its CONNECT ...
    use_authenticated_principal: bool = False  #: ... or the name under which the broker knows that client


DEFAULT_SETTINGS = Settings()
