"""Coding: the answers to all questions of a destination in a few whole numbers, two bits an answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analytics.whatif.questions import Answer, Question

#: Answers in a word: twice as many bits, and a long has 63 beside its sign.
PER_WORD = 31
_ANSWERS: tuple[Answer, ...] = (False, True, None)


@dataclass(frozen=True, slots=True)
class Coding:
    """Which questions are asked where. Destinations that ask the same stand together, in `groups`."""

    groups: tuple[tuple[tuple[str, ...], tuple[Question, ...]], ...]

    @staticmethod
    def of(asked: Mapping[str, Sequence[Question]]) -> Coding:
        """From the questions of each destination; those that ask nothing are left out."""
        together: dict[tuple[Question, ...], list[str]] = {}
        for destination, questions in asked.items():
            if questions:
                together.setdefault(tuple(questions), []).append(destination)
        return Coding(tuple((tuple(destinations), questions) for questions, destinations in together.items()))

    @property
    def destinations(self) -> tuple[str, ...]:
        """All that ask anything."""
        return tuple(each for destinations, _ in self.groups for each in destinations)

    @property
    def questions(self) -> tuple[Question, ...]:
        """All that is asked anywhere, each once."""
        return tuple(dict.fromkeys(each for _, questions in self.groups for each in questions))

    @property
    def words(self) -> tuple[str, ...]:
        """The columns that hold the answers: as many as the destination with the most questions needs."""
        most = max((len(questions) for _, questions in self.groups), default=0)
        return tuple(f"answers_{number}" for number in range(-(-most // PER_WORD)))

    def questions_of(self, destination: str) -> tuple[Question, ...]:
        """What is asked of messages sent there."""
        return next((questions for destinations, questions in self.groups if destination in destinations), ())

    def answers(self, destination: str, words: Sequence[int]) -> dict[Question, Answer]:
        """What words mean there."""
        return {
            question: _ANSWERS[words[number // PER_WORD] >> 2 * (number % PER_WORD) & 3]
            for number, question in enumerate(self.questions_of(destination))
        }
