"""Encode the answers to all conditions of a destination in a few integers, two bits an answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analytics.whatif.conditions import Answer, SelectorCondition

#: Answers of two bits in a word: a long has 63 bits beside its sign.
ANSWERS_PER_WORD = 31
_ANSWERS: tuple[Answer, ...] = (False, True, None)


@dataclass(frozen=True, slots=True)
class AnswerEncoding:
    """The conditions of each destination. Destinations with the same conditions are one group."""

    groups: tuple[tuple[tuple[str, ...], tuple[SelectorCondition, ...]], ...]

    @staticmethod
    def of(asked: Mapping[str, Sequence[SelectorCondition]]) -> AnswerEncoding:
        """Group destinations by their conditions, without destinations that have none."""
        together: dict[tuple[SelectorCondition, ...], list[str]] = {}
        for destination, conditions in asked.items():
            if conditions:
                together.setdefault(tuple(conditions), []).append(destination)
        return AnswerEncoding(tuple((tuple(destinations), conditions) for conditions, destinations in together.items()))

    @property
    def destinations(self) -> tuple[str, ...]:
        """Return all destinations that have conditions."""
        return tuple(each for destinations, _ in self.groups for each in destinations)

    @property
    def conditions(self) -> tuple[SelectorCondition, ...]:
        """Return the conditions of all destinations, each once."""
        return tuple(dict.fromkeys(each for _, conditions in self.groups for each in conditions))

    @property
    def words(self) -> tuple[str, ...]:
        """Return the columns that hold the answers: as many as the destination with the most conditions needs."""
        most = max((len(conditions) for _, conditions in self.groups), default=0)
        return tuple(f"answers_{number}" for number in range(-(-most // ANSWERS_PER_WORD)))

    def conditions_of(self, destination: str) -> tuple[SelectorCondition, ...]:
        """Return the conditions that routing evaluates for messages sent to this destination."""
        return next((conditions for destinations, conditions in self.groups if destination in destinations), ())

    def encode_answers(self, destination: str, headers: Mapping[str, str]) -> tuple[int, ...]:
        """Return the encoded answers of the broker's own selectors for a message with these headers, sent there."""
        words = [0] * len(self.words)
        for number, each in enumerate(self.conditions_of(destination)):
            answer = each.selector.evaluate({**headers, **each.headers})
            words[number // ANSWERS_PER_WORD] |= _ANSWERS.index(answer) << 2 * (number % ANSWERS_PER_WORD)
        return tuple(words)

    def answers(self, destination: str, words: Sequence[int]) -> dict[SelectorCondition, Answer]:
        """Decode the answers to the conditions of a destination from their words of two bits each."""
        return {
            condition: _ANSWERS[words[number // ANSWERS_PER_WORD] >> 2 * (number % ANSWERS_PER_WORD) & 3]
            for number, condition in enumerate(self.conditions_of(destination))
        }
