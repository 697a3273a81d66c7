"""Everything that can go wrong in the broker, by who must act: the peer, the operator, or the machine."""

from __future__ import annotations


class BrokerError(Exception):
    """Base of all errors of the broker. `code` is stable: clients and tests may rely on it."""

    code = "broker-error"


# -- the peer must act


class ProtocolError(BrokerError):
    """The peer sent what the protocol does not allow; the connection ends."""

    code = "protocol"


class OpenWireError(ProtocolError):
    """Bytes that are not what OpenWire allows, or a value that it cannot encode."""


class RequestRefused(BrokerError):
    """One frame could not be carried out; the connection goes on."""

    code = "refused"


class InvalidDestination(RequestRefused):
    """A text that names no destination."""

    code = "invalid-destination"

    def __init__(self, text: str, rule: str = "expected /queue/NAME or /topic/NAME") -> None:
        super().__init__(f"{text!r} is not a destination: {rule}")
        self.text = text

    @classmethod
    def from_message(cls, sentence: str) -> InvalidDestination:
        """Return the error that another process raised, from its sentence."""
        error = cls.__new__(cls, sentence)
        error.text = ""
        return error


class SubscriptionNotFound(RequestRefused):
    """There is no durable subscription of this name."""


class TemporaryDestinationGone(RequestRefused):
    """A temporary destination that does not exist, or no longer."""

    def __init__(self, destination: str) -> None:
        super().__init__(f"the destination {destination} does not exist: its connection was closed")
        self.destination = destination


class TransactionNotFound(RequestRefused):
    """No transaction of this name is open or prepared."""

    code = "transaction-not-found"


class TransactionNotPrepared(RequestRefused):
    """A transaction that is to be committed in two phases was not prepared."""

    code = "transaction-not-prepared"


class TransactionRolledBack(RequestRefused):
    """A transaction could not be prepared or committed: it was rolled back."""

    code = "transaction-rolled-back"


class SelectorSyntaxError(RequestRefused):
    """A selector that does not parse; `position` is the 0-based offset of the offending character."""

    code = "invalid-selector"

    def __init__(self, text: str, position: int, reason: str) -> None:
        self.text, self.position, self.reason = text, position, reason
        super().__init__(f"selector {text!r} is wrong at position {self.column}: {reason}")

    @property
    def column(self) -> int:
        """The position as people count: the first character is at 1."""
        return self.position + 1

    @property
    def before(self) -> str:
        """The part of the text that can be read."""
        return self.text[: self.position]

    @property
    def behind(self) -> str:
        """What begins with the offending character; "" when the text ends too early."""
        return self.text[self.position :]


class AccessDenied(RequestRefused):
    """The principal lacks the named right."""

    code = "access-denied"


class AuthenticationFailed(ProtocolError):
    """User name or password is wrong, or the user may not connect; the connection ends."""

    code = "authentication-failed"


class ClientIdTaken(ProtocolError):
    """Another client is connected with the client id; the connection that asks for it ends."""

    code = "client-id-taken"

    def __init__(self, client_id: str) -> None:
        super().__init__(f"client-id {client_id!r} is connected already")


class ConsumerTooSlow(RequestRefused):
    """A consumer did not keep up for as long as its policy bears."""

    code = "slow-consumer"


# -- the operator must act


class DestinationNotFound(BrokerError):
    """An operator named a destination that does not exist."""

    code = "destination-not-found"


class DefinitionRefused(BrokerError):
    """A definition that cannot be applied: what is wrong with it, in one sentence."""

    code = "definition-refused"


class DefinitionConflict(BrokerError):
    """Somebody changed the definitions since they were read; `current` is the version that stands now."""

    code = "definition-conflict"

    def __init__(self, expected: int, current: int) -> None:
        super().__init__(f"definitions changed: expected version {expected}, found {current}; reload and retry")
        self.current = current


class ConfigurationRefused(BrokerError):
    """A configuration that cannot be used."""

    code = "configuration"


class StartRefused(ConfigurationRefused):
    """What is needed for a start cannot be had now, such as a port that another program uses: a later start may do."""


#: Exit code of processes that a configuration keeps from starting (EX_CONFIG of sysexits.h): not to be restarted.
CONFIGURATION_EXIT_CODE = 78


class BackupRefused(BrokerError):
    """A backup that cannot be written or restored: why, and what to do."""

    code = "backup-refused"


class LimitExceeded(RequestRefused):
    """A limit an operator set stands in the way; nothing was stored."""

    code = "limit-exceeded"


class TooLarge(RequestRefused):
    """A body or a request that is larger than may be sent."""

    code = "too-large"


# -- the machine must act


class StoreUnavailable(BrokerError):
    """The store does not answer."""

    code = "store-unavailable"


class StoreUnreachable(StoreUnavailable):
    """No connection to the store's server can be made."""


class NodeIsolated(BrokerError):
    """This node lives, and another, but they do not reach each other; this one must stop."""

    code = "unlinked"


class ShardConflict(NodeIsolated):
    """Two nodes put the same log into different shards, as they routed by different definitions; this one must stop."""

    code = "shard-conflict"


class Fenced(BrokerError):
    """Another node took over; this one must stop."""

    code = "fenced"


class StoreRolledBack(Fenced):
    """The store lost changes that it had confirmed to this node; this one must stop."""

    code = "store-rolled-back"
