"""PartWrite: what one shard does of a write to several."""

from __future__ import annotations

from collections.abc import Sequence

from brokerapp.store import AppendRun, CopyRow, IntentChange, PendingWrite, SettledEntry

#: How the keys begin by which parts of writes to several shards are recognised that are done again.
INTENT_KEY = "intent "


class PartWrite(PendingWrite):
    """A part of a write to several shards, or the end of intents.

    `part_of`: the intent that has it done, so that the shard knows the part when it is done again; "": none has.
    `dedup_key`: by which the messages are recognised when another broker or a client sends them again.
    """

    __slots__ = ("dedup_key", "intent", "part_of")

    def __init__(
        self,
        appends: Sequence[tuple[bytes, Sequence[CopyRow]]] = (),
        settles: Sequence[SettledEntry] = (),
        *,
        runs: Sequence[AppendRun] = (),
        droppable: Sequence[tuple[int, int, int]] = (),
        ignores_limits: bool = True,
        part_of: str = "",
        dedup_key: str = "",
        intent: IntentChange | None = None,
    ) -> None:
        super().__init__(appends, settles, ignores_limits, droppable=droppable, runs=runs)
        self.part_of, self.dedup_key, self.intent = part_of, dedup_key, intent

    def dedup_keys(self, position: int) -> list[tuple[int, str]]:
        keys = [INTENT_KEY + self.part_of] if self.part_of else []
        if self.dedup_key:
            keys.append(self.dedup_key)
        return [(position, key) for key in keys]
