"""Builds all keys of the store. A broker has one hash tag, so that one function may access all its keys.

{B}:state          hash    session:S, batch:S, reply:S: a session that may write, what it wrote last; epoch: how often
                           the members changed; seq, bytes; expiring, returned: how many entries are; prioritized: how
                           many logs are; format: of all that is stored; changes: how many were made; rollbacks:
                           how often the store was rolled back, and of the last time rollback_life, rollback_ms (when)
                           and rollback_changes (how many are missing); restored_ms: when it was restored from the
                           backup of backup_ms; shards: how many shards were added;
                           moves: number of the last move of a family that the shard knows of
{B}:lives          list    LIFE CHANGES SEQ: with what each life of the server began, see functions/history.lua
{B}:logs           hash    log name -> JSON: the message logs that exist
{B}:logs:copies    hash    log name -> number of the move that brought it, see functions/copies.lua
{B}:log:NAME       stream  one entry a message, id `SEQ-0`: field m (message) or r (payload's SEQ), o, d
{B}:payload:NUMBER hash    m (message), c (references to it); NUMBER: its SEQ, in other shards than the first with what
                           payload_base says added
{B}:used           hash    log name -> bytes it holds
{B}:marks          hash    log name -> SEQ up to which messages may have been delivered, or `open`
{B}:expiring       zset    log name -> no later than when the first of its messages expires
{B}:expiring:NAME  zset    entry of the log -> when it expires, milliseconds since the epoch
{B}:returned:NAME  hash    entry of the log -> how often it was delivered and came back, where a policy limits that
{B}:prioritized    set     names of logs that are kept in order of priority, too
{B}:urgent:NAME    zset    entry of such a log -> its place: the most urgent first, see engine/entries/message_order.py
{B}:due            zset    job -> when it is due, milliseconds since the epoch
{B}:jobs           hash    job -> its record: what is to be sent then
{B}:intents        hash    intent -> what other shards are to do of a write, see store/shards/intent_codec.py
{B}:prepared       hash    branch of a transaction that is prepared -> JSON: of whom, since when, how much it holds
{B}:prepared:held  hash    the same -> what it holds, see engine/clients/prepared_branch.py
{B}:audit          zset    what was handed over, by log -> SEQ when it was kept, see functions/bridge_dedup.lua
{B}:audit:intents  zset    parts of writes to several shards that may be asked for again -> SEQ when they were done
{B}:audit:clients  zset    the same of messages whose clients may send them again
{B}:shards         hash    number of a shard beside this one, which is 0 -> JSON: its URL and state; its keys have the
                           hash tag {B/NUMBER}
{B}:shards:logs    hash    log -> number of the shard it is in, if it was made since there are shards; else in shard 0
{B}:shards:families hash   family of logs -> number of the shard it lives in
{B}:shards:vanished set    `log NAME` or `family NAME` of these two that seems to be gone: forgotten if not claimed
{B}:shards:move    string  JSON: the last move of a family between shards, and how far it is; expires
{B}:moving         string  by what the move is known that brings logs into this shard
{B}:cluster        hash    id, version, `=NAME` -> JSON: the copy of the record of the broker's cluster
{B}:definitions    hash    version -> JSON, `current` -> version, `meta:VERSION` -> JSON
{B}:connectors     string  JSON: `connectors` to other brokers, and `imported`: those the file named last
{B}:stats          hash    destination -> JSON; `{B}:stats:changed` zset destination -> snapshot version
{B}:nodes          hash    name of a member -> JSON of what others need to know of it
{B}:node:NAME      string  JSON of its status, expires when it stops beating
{B}:replicas       string  how many replicas confirm changes, as the node that started last wants
{B}:secret         string  by what the members know each other
{B}:restored       string  JSON: the backup that the store was restored from, until it acts as the original
{B}:restoring      string  JSON: the restore that fills the store; expires
{B}:sync-delay     string  `RUN_ID SECONDS`: repl-diskless-sync-delay of the server, while a backup has it at 0
{B}:requests       list    ids of what operators ask of any node
{B}:requests:NAME  list    the same of one of them
{B}:request:ID     string  JSON of one request, expires when nobody waits for the answer any more
{B}:reply:ID       list    JSON of the answer
{B}:trace          stream  trace batches
{B}:rings          zset    destination with a history -> when it moved last, seconds since the epoch
{B}:ring:R:NAME    list    points of its history in the resolution R, oldest first; NAME `broker`: of the whole
{B}:run-progress:ID string  JSON: how far a run of an analysis is, see analytics/spark/run_progress.py; expires
{B}:lease:NAME     string  who does what one process of all does, expires when it stops
sluice:libraries   zset    function library -> when a node of its version used it last, seconds since the epoch; one for
                           all brokers of the server; in a cluster {B}:libraries
{B}:signals        channel `definitions`, `stats VERSION`, `nodes`, `connectors`, `shards`
"""

from __future__ import annotations

from dataclasses import dataclass

LIBRARIES = "sluice:libraries"
#: Numbers of payloads that a shard may give: payloads keep theirs when they move to another one.
PAYLOADS_OF_A_SHARD = 2**45
#: Shards that a broker may have, removed ones included: numbers of payloads are exact up to 2^53.
MOST_SHARDS = 2**53 // PAYLOADS_OF_A_SHARD


@dataclass(frozen=True, slots=True)
class StoreKeys:
    """Builds the keys of one broker."""

    broker: str
    shard: int = 0  #: 0: the first, or only, store of the broker

    def _key(self, rest: str) -> str:
        tag = f"{self.broker}/{self.shard}" if self.shard else self.broker
        return f"{{{tag}}}:{rest}"

    @property
    def state(self) -> str:
        """See the table above; so for all below."""
        return self._key("state")

    @property
    def lives(self) -> str:
        return self._key("lives")

    @property
    def logs(self) -> str:
        return self._key("logs")

    @property
    def copies(self) -> str:
        return self._key("logs:copies")

    @property
    def log_prefix(self) -> str:
        return self._key("log:")

    @property
    def payload_prefix(self) -> str:
        return self._key("payload:")

    @property
    def used(self) -> str:
        return self._key("used")

    @property
    def marks(self) -> str:
        return self._key("marks")

    @property
    def expiring(self) -> str:
        return self._key("expiring")

    @property
    def expiring_prefix(self) -> str:
        return self._key("expiring:")

    @property
    def returned_prefix(self) -> str:
        return self._key("returned:")

    @property
    def prioritized(self) -> str:
        return self._key("prioritized")

    @property
    def urgent_prefix(self) -> str:
        return self._key("urgent:")

    @property
    def due(self) -> str:
        return self._key("due")

    @property
    def jobs(self) -> str:
        return self._key("jobs")

    @property
    def intents(self) -> str:
        return self._key("intents")

    @property
    def prepared(self) -> str:
        return self._key("prepared")

    @property
    def prepared_held(self) -> str:
        return self._key("prepared:held")

    @property
    def audit(self) -> str:
        return self._key("audit")

    @property
    def shards(self) -> str:
        return self._key("shards")

    @property
    def shard_logs(self) -> str:
        return self._key("shards:logs")

    @property
    def shard_families(self) -> str:
        return self._key("shards:families")

    @property
    def shard_vanished(self) -> str:
        return self._key("shards:vanished")

    @property
    def shard_move(self) -> str:
        return self._key("shards:move")

    @property
    def moving(self) -> str:
        return self._key("moving")

    @property
    def payload_base(self) -> int:
        """Return what is added to the number of a message for that of its payload: no two shards have the same."""
        return self.shard * PAYLOADS_OF_A_SHARD

    @property
    def of_empty_shard(self) -> list[str]:
        """Return the keys that a shard beside the first has when no logs are in it."""
        audits = [self.audit, f"{self.audit}:clients", f"{self.audit}:intents"]
        return [
            self.state, self.lives, self.logs, self.copies, self.used, self.marks, self.expiring, self.prioritized,
            *audits, self.intents, self.nodes, self.moving, self.libraries,
        ]  # fmt: skip

    @property
    def cluster(self) -> str:
        return self._key("cluster")

    @property
    def definitions(self) -> str:
        return self._key("definitions")

    @property
    def connectors(self) -> str:
        return self._key("connectors")

    @property
    def stats(self) -> str:
        return self._key("stats")

    @property
    def stats_changed(self) -> str:
        return self._key("stats:changed")

    @property
    def nodes(self) -> str:
        return self._key("nodes")

    @property
    def replicas(self) -> str:
        return self._key("replicas")

    @property
    def secret(self) -> str:
        return self._key("secret")

    @property
    def restored(self) -> str:
        return self._key("restored")

    @property
    def restoring(self) -> str:
        return self._key("restoring")

    @property
    def sync_delay(self) -> str:
        return self._key("sync-delay")

    def node(self, name: str) -> str:
        return self._key(f"node:{name}")

    @property
    def requests(self) -> str:
        return self._key("requests")

    def requests_of(self, node: str) -> str:
        return self._key(f"requests:{node}")

    def request(self, id: str) -> str:
        return self._key(f"request:{id}")

    def reply(self, id: str) -> str:
        return self._key(f"reply:{id}")

    @property
    def run_progress_prefix(self) -> str:
        """Return the prefix of keys for the progress of analyses."""
        return self._key("run-progress:")

    @property
    def trace(self) -> str:
        return self._key("trace")

    @property
    def rings(self) -> str:
        return self._key("rings")

    def ring(self, resolution: str, name: str) -> str:
        return self._key(f"ring:{resolution}:{name}")

    def lease(self, name: str) -> str:
        return self._key(f"lease:{name}")

    @property
    def libraries(self) -> str:
        return self._key("libraries")

    @property
    def signals(self) -> str:
        return self._key("signals")

    def log(self, name: str) -> str:
        return self.log_prefix + name


def trace_key(broker: str) -> str:
    """Return the key of a broker's stream of trace batches."""
    return StoreKeys(broker).trace


def run_progress_key(broker: str, run_id: str) -> str:
    """Return the key for the progress of one run of an analysis."""
    return f"{StoreKeys(broker).run_progress_prefix}{run_id}"
