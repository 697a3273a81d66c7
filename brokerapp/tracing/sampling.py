"""Samples trace events: of the messages sent to a destination all, none or one in n, and some of their properties.

Chosen by message, not by event: of a message that is recorded everything is, so that journeys stay whole. The id
decides, so all nodes choose alike, and the one in 100 are among the one in 10. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from zlib import crc32

from brokerapp.model.jms.form import JMS_HEADER
from brokerapp.model.message import unescape
from brokerapp.tracing.recorder import EventBatch, Runs
from brokerapp.tracing.schema import ENQUEUE, RUN_FIELDS, TRACE_CONTEXT, WITHOUT_MESSAGE

_ALL_IDS = 1 << 32


@dataclass(frozen=True, slots=True)
class SamplingRule:
    """Which messages sent to one destination are recorded."""

    one_in: int = 1  #: 1: every message; 0: none
    properties: frozenset[str] | None = None  #: those that are kept, beside the trace context; None: all

    def includes(self, id: str) -> bool:
        """Return whether the message of this id is recorded."""
        return crc32(id.encode(errors="replace")) * self.one_in < _ALL_IDS


EVERYTHING = SamplingRule()


def sampling_rule(one_in: int | None, properties: str | None) -> SamplingRule:
    """Return the rule of a policy: None records everything; names of properties are separated by commas."""
    names = None if properties is None else frozenset(filter(None, map(str.strip, properties.split(","))))
    return SamplingRule(1 if one_in is None else max(0, one_in), names)


def sample_batch(batch: EventBatch, choice_of: Callable[[str], SamplingRule]) -> EventBatch:
    """Return the events of a batch that are recorded; `choice_of` returns the rule of a native destination."""
    choices = {original: choice_of(original) for original in set(batch.runs[3::RUN_FIELDS])}
    if all(each == EVERYTHING for each in choices.values()):
        return batch
    runs: Runs = []
    facts: list[tuple[str, int, int]] = []
    heads: list[bytes] = []
    its_facts: list[tuple[str, int, int]] = []
    count, of_messages, old_heads = 0, 0, iter(batch.heads)
    for at in range(0, len(batch.runs), RUN_FIELDS):
        run = batch.runs[at : at + RUN_FIELDS]
        kind, destinations, choice = run[1], run[2], EVERYTHING if run[1] in WITHOUT_MESSAGE else choices[run[3]]
        if run[6] >= 0:
            its_facts = batch.facts[of_messages : of_messages + run[6]]
            of_messages += run[6]
        its_heads = list(islice(old_heads, len(its_facts))) if kind == ENQUEUE else []
        kept = _sampled_facts(its_facts, choice)
        if not kept:
            continue
        runs += (*run[:6], len(kept))
        facts += kept
        count += len(kept) * len(destinations)
        for fact, head in zip(its_facts, its_heads, strict=False):  # none where properties are not recorded
            if choice.one_in == 1 or choice.includes(fact[0]):
                heads.append(head if choice.properties is None else _with_properties(head, choice.properties))
    weights = {original: each.one_in for original, each in choices.items() if each.one_in > 1}
    return replace(batch, runs=runs, facts=facts, heads=heads, count=count, weights=weights)


def _sampled_facts(facts: list[tuple[str, int, int]], choice: SamplingRule) -> list[tuple[str, int, int]]:
    if choice.one_in == 1:
        return facts
    return [each for each in facts if choice.includes(each[0])] if choice.one_in else []


def _with_properties(head: bytes, properties: frozenset[str]) -> bytes:
    """Return the head with its first line, the message-id, and these properties, with their types where it has any."""
    first, *rest = head.splitlines(keepends=True)
    kept = properties | TRACE_CONTEXT | ({JMS_HEADER} if properties else frozenset())
    return first + b"".join(line for line in rest if unescape(line.partition(b":")[0].decode()) in kept)
