"""Reads and changes the shards of a broker's store, and moves families of logs between them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass

from brokerapp.engine.sharding.families import Families, feeds_of
from brokerapp.engine.sharding.placement import FIRST_SHARD, Move, combined_load, suggest_moves
from brokerapp.errors import RequestRefused, StoreUnavailable
from brokerapp.model import JsonObject, JsonValue
from brokerapp.model.definitions import Definitions
from brokerapp.model.stats_records import DestinationStats
from brokerapp.store.client.keys import MOST_SHARDS, StoreKeys
from brokerapp.store.memory_limits import store_limit
from brokerapp.store.redis import RedisStore
from brokerapp.store.server.durability import REMEDY, durability_loss, replica_shortage
from brokerapp.store.shards.broker_store import BrokerStore
from brokerapp.store.shards.family_moves import FAILED, MOVED
from brokerapp.store.shards.intents import IntentStore
from brokerapp.store.shards.record import DRAINING, JOINING, SERVING, Shard, ShardRecord
from brokerapp.system.store_address import without_password

#: Seconds to wait for one shard: those that answer are shown without those that do not.
ANSWER_SECONDS = 2.0
#: Seconds within which nodes serve a shard that was added: they look once a second and report once a second.
SERVED_SECONDS = 20.0
#: Seconds between two looks whether they do, and whether a move has ended.
LOOK_SECONDS = 0.25
#: Seconds to wait for the end of a move, where a family is not that large; and of any, at some 5,000 messages a second.
MOVED_SECONDS, LONGEST_MOVE_SECONDS = 70.0, 3600.0


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """A shard and what it holds. Counts are 0 for one that does not answer."""

    number: int
    url: str  #: without its password
    state: str  #: joining, serving or draining
    answers: bool
    destinations: int = 0
    families: int = 0
    messages: int = 0
    used: int = 0  #: bytes of messages
    limit: int = 0  #: of these bytes; 0: none, or no node is running
    intents: int = 0  #: writes over several shards that this one coordinates and that are not complete yet

    def to_json(self) -> JsonObject:
        """Return the object as values that JSON can hold."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class FamilyStatus:
    """A family of logs with its load."""

    family: str  #: name of its destination; "" for temporary destinations
    shard: int
    destinations: int
    messages: int
    used: int  #: bytes of messages
    rate: float = 0.0  #: messages enqueued and dequeued a second

    def to_json(self) -> JsonObject:
        """Return the object as values that JSON can hold."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Content:
    """What one shard holds."""

    attributes: Mapping[str, JsonObject]
    depths: Mapping[str, int]
    used: Mapping[str, int]
    total: int
    intents: int


class ShardAdmin:
    """Shards of the store. `ask` asks a live node, `require_replicas` has replicas confirm what is changed; the others
    read counters and definitions.
    """

    def __init__(
        self,
        store: BrokerStore,
        ask: Callable[..., Awaitable[JsonValue]],
        require_replicas: Callable[[], Awaitable[None]],
        stats: Callable[[], Awaitable[tuple[int, list[DestinationStats], object]]],
        definitions: Callable[[], Awaitable[Definitions]],
    ) -> None:
        self._store, self._ask, self._require_replicas = store, ask, require_replicas
        self._stats, self._definitions = stats, definitions

    async def _open(self) -> None:
        """Connect to shard 0, whose replicas confirm changes of the record: other shards need not answer for that."""
        await self._store.main.open()
        await self._require_replicas()

    # -- what there is

    async def all(self) -> list[ShardStatus]:
        """Return all shards by number; a broker with one store has shard 0 only."""
        record, contents = await self._read()
        limits = await self._limits()
        families = await self._families()
        found = []
        for number, content in sorted(contents.items()):
            shard = record.shards.get(number)
            url, state = (shard.url, shard.state) if shard else (self._store.url, SERVING)
            if content is None:
                found.append(ShardStatus(number, without_password(url), state, False, limit=limits.get(number, 0)))
                continue
            names = {families.family_of(log, feeds_of(about)) for log, about in content.attributes.items()}
            found.append(
                ShardStatus(
                    number, without_password(url), state, True, len(content.attributes), len(names),
                    sum(content.depths.values()), content.total, limits.get(number, 0), content.intents,
                )
            )  # fmt: skip
        return found

    async def families(self, number: int | None = None, rates: Mapping[str, float] | None = None) -> list[FamilyStatus]:
        """Return the families of one shard, or of all that answer, those with the most bytes first.

        `rates` are messages a second by log. Raises RequestRefused for a shard that there is not, StoreUnavailable
        for one that does not answer.
        """
        record, contents = await self._read()
        if number is not None:
            self._check(record, number)
            if contents[number] is None:
                raise StoreUnavailable(f"shard {number} does not answer")
        families, rates = await self._families(), rates or {}
        sums: dict[tuple[str, int], list[float]] = {}
        for shard, content in contents.items():
            if content is None or number not in (None, shard):
                continue
            for log, about in content.attributes.items():
                row = sums.setdefault((families.family_of(log, feeds_of(about)), shard), [0, 0, 0, 0.0])
                for at, value in enumerate(
                    (1, content.depths.get(log, 0), content.used.get(log, 0), rates.get(log, 0))
                ):
                    row[at] += value
        found = [
            FamilyStatus(family, shard, int(count), int(messages), int(used), rate)
            for (family, shard), (count, messages, used, rate) in sums.items()
        ]
        return sorted(found, key=lambda each: (-each.used, each.family, each.shard))

    async def rates(self, seconds: float) -> dict[str, float]:
        """Measure for so long how many messages a second each log takes and gives."""
        before = {str(each.destination): each for each in (await self._stats())[1]}
        await asyncio.sleep(seconds)
        after = {str(each.destination): each for each in (await self._stats())[1]}
        return {
            name: max(0, _moved(each) - _moved(before[name])) / seconds
            for name, each in after.items()
            if name in before
        }

    async def suggest(self, seconds: float = 3.0) -> list[Move]:
        """Return the moves that would make the load of the shards even, measured for so long."""
        record, contents = await self._read()
        if silent := [number for number, content in contents.items() if content is None]:
            raise StoreUnavailable(f"shard {silent[0]} does not answer: its load is not known")
        return moves_for(await self.families(rates=await self.rates(seconds)), record)

    # -- changes

    async def add(self, url: str) -> int:
        """Add a store as a shard in state `joining`, and return its number. See `wait_until_serving`.

        Raises ConfigurationRefused for a URL or server that is not fit, RequestRefused for a store that is in use or
        keeps messages less safely than the first, StoreUnavailable for one that does not answer.
        """
        await self._open()
        await self._check_store(url)
        return await self._store.shard_record.add(url)

    async def _check_store(self, url: str) -> None:
        """Raise an error that says why a store cannot be a shard."""
        statuses = (await self._store.nodes.statuses()).values()
        wanted = max((status.get("store", {}).get("replicas_wanted", 0) for status in statuses), default=0)
        kept = all(status.get("store", {}).get("kept", True) for status in statuses)
        name, record = f"the store {without_password(url)}", await self._store.shard_record.read_shards()
        store = RedisStore(url, self._store.keys.broker, shard=await self._store.shard_record.next_number())
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await store.open()
                memory = await store.server.memory()
                await _clear_former(store, record, name)
        except TimeoutError:
            raise StoreUnavailable(f"{name} did not answer within {ANSWER_SECONDS:g} s") from None
        except StoreUnavailable as error:
            raise StoreUnavailable(f"{name} is unreachable: {error}") from error
        finally:
            await store.close()
        store_limit(0, memory)  # refuses a server that evicts keys
        loss = durability_loss({**memory, "kept": kept})
        if loss and loss != durability_loss({**await self._store.server.memory(), "kept": kept}):
            raise RequestRefused(f"{name} is less durable than the first store: {loss}; {REMEDY}")
        if few := replica_shortage({**memory, "replicas_wanted": wanted}):
            raise RequestRefused(f"{name}: {few}")

    async def wait_until_serving(self, number: int, seconds: float = SERVED_SECONDS) -> bool:
        """Wait until the nodes serve a shard that was added; return whether they do in that time."""
        for _ in range(max(1, int(seconds / LOOK_SECONDS))):
            shard = (await self._store.shard_record.read()).shards.get(number)
            if shard is None or shard.state != JOINING:
                return shard is not None
            await asyncio.sleep(LOOK_SECONDS)
        return False

    async def drain(self, number: int, *, cancel: bool = False) -> None:
        """Put no new families into a shard, and have the nodes move away those that are there; or cancel that."""
        await self._open()
        shard = self._changeable(await self._store.shard_record.read(), number)
        wanted = SERVING if cancel else DRAINING
        if shard.state == JOINING:
            raise RequestRefused(f"shard {number} is joining: wait until the nodes serve it, or remove it")
        if shard.state == wanted:
            raise RequestRefused(f"shard {number} is {wanted} already")
        if not await self._store.shard_record.set_state(shard, wanted):
            raise RequestRefused(f"shard {number} was removed meanwhile")

    async def remove(self, number: int) -> None:
        """Remove a shard on which nothing is. Raises RequestRefused while it serves, or holds a destination."""
        await self._open()
        shard = self._changeable(await self._store.shard_record.read(), number)
        if shard.state == SERVING:
            raise RequestRefused(f"shard {number} is serving: drain it first")
        _, contents = await self._read()
        content = contents[number]
        if content is None:
            raise StoreUnavailable(f"shard {number} does not answer: whether it holds messages is not known")
        if content.intents:
            raise RequestRefused(f"shard {number} has {content.intents} incomplete writes: try again")
        await self._store.shard_record.remove(number, content.attributes)

    async def move(self, family: str, number: int) -> JsonObject:
        """Begin to move a family to a shard; a node leads the move. Raises RequestRefused. See `wait_until_moved`."""
        return await self._ask("move_family", family=family, shard=number)

    async def wait_until_moved(
        self, move: Mapping[str, JsonValue], seconds: float = LONGEST_MOVE_SECONDS
    ) -> JsonObject:
        """Wait until a move has ended, and return it. Raises RequestRefused when it failed, or is not done by then."""
        for _ in range(int(seconds / LOOK_SECONDS)):
            last = await self._store.moves.last()
            if last is None or last.token != move["token"]:
                raise RequestRefused("how the move ended is no longer known: list the families")
            if last.state == FAILED:
                raise RequestRefused(f"the family {last.family!r} was not moved: {last.error}")
            if last.state == MOVED:
                return asdict(last)
            await asyncio.sleep(LOOK_SECONDS)
        raise RequestRefused(
            f"the family {move['family']!r} is still being moved after {seconds:g} s: the move continues"
        )

    # -- reading

    def _check(self, record: ShardRecord, number: int) -> None:
        numbers = sorted({FIRST_SHARD, *record.shards})
        if number not in numbers:
            raise RequestRefused(f"shard {number} does not exist: there are {', '.join(map(str, numbers))}")

    def _changeable(self, record: ShardRecord, number: int) -> Shard:
        """Return a shard that may be drained and removed."""
        self._check(record, number)
        if number == FIRST_SHARD:
            raise RequestRefused("shard 0 holds the definitions: it can be neither drained nor removed")
        return record.shards[number]

    async def _read(self) -> tuple[ShardRecord, dict[int, _Content | None]]:
        """Return the record, and what each shard holds; None for one that does not answer."""
        record, stores = await self._store.shards.refresh(), dict(self._store.shards.stores)
        contents = await asyncio.gather(*(_content(store) for store in stores.values()))
        if contents[0] is None:
            raise StoreUnavailable("the first store of the broker does not answer")
        return record, dict(zip(stores, contents, strict=True))

    async def _limits(self) -> dict[int, int]:
        """Return the limits of the shards in bytes, as the nodes report them."""
        found: dict[int, int] = {}
        for status in (await self._store.nodes.statuses()).values():
            found[FIRST_SHARD] = status.get("store", {}).get("message_limit", 0)
            found.update({each["number"]: each["limit"] for each in status.get("shards", [])})
        return found

    async def _families(self) -> Families:
        return Families(await self._definitions())


def moves_for(families: list[FamilyStatus], record: ShardRecord) -> list[Move]:
    """Suggest moves for families with this load: half of it are messages a second, half are bytes. Pure."""
    loads = combined_load({each.family: (each.rate, float(each.used)) for each in families})
    return suggest_moves(loads, {each.family: each.shard for each in families}, record.serving)


def _moved(stats: DestinationStats) -> int:
    return stats.EnqueueCount + stats.DequeueCount


async def _content(store: RedisStore) -> _Content | None:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            attributes = await store.logs.all_attributes()
            total, used = await store.logs.used_bytes()
            depths = await store.logs.depths(list(attributes))
            intents = await IntentStore(store.client).count()
    except (TimeoutError, StoreUnavailable):
        return None
    return _Content(attributes, depths, used, total, intents)


async def _clear_former(store: RedisStore, record: ShardRecord, name: str) -> None:
    """Remove what a shard that was drained and removed left in its store.

    Raises RequestRefused where the store is one of the broker's, or holds messages.
    """
    broker = store.keys.broker
    # In a cluster each shard has keys of its own, and those of others are no concern of it.
    numbers = [store.keys.shard] if store.client.is_in_cluster else range(MOST_SHARDS)
    all_keys = [StoreKeys(broker, number) for number in numbers]
    found = await store.client.execute_many([("EXISTS", keys.state, keys.logs) for keys in all_keys])
    for keys in (keys for keys, count in zip(all_keys, found, strict=True) if count):
        if keys.shard == FIRST_SHARD or keys.shard in record.shards:
            raise RequestRefused(f"{name} is shard {keys.shard} of broker {broker!r} already")
        logs, intents, nodes = await store.client.execute_many(
            [("HKEYS", keys.logs), ("HLEN", keys.intents), ("HKEYS", keys.nodes)]
        )
        if logs or intents:
            raise RequestRefused(
                f"{name} was shard {keys.shard} of broker {broker!r} and still holds {len(logs)} destinations: "
                f"it can be added when its keys {keys.state.removesuffix('state')}* are deleted"
            )
        members = [keys.node(each.decode()) for each in nodes]
        if members and await store.client.execute("EXISTS", *members):
            raise RequestRefused(f"{name} was shard {keys.shard} until a moment ago: try again in some seconds")
        await store.client.execute("UNLINK", *keys.of_empty_shard, *members)
