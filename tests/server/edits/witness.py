"""Knows who typed each character and who took it away, and judges what an agent was told of its edits."""

import re
from dataclasses import dataclass, field
from typing import Literal

SHOWN = re.compile(r"^(\d+): (.*)$", re.MULTILINE)


@dataclass(slots=True, kw_only=True)
class Told:
    """What the agent wanted, and what it was told of it."""

    brings: set[str]
    takes: set[str]
    """What is not there if it was written."""
    may_take: set[str]
    """What need not be there."""
    outcome: Literal["", "written", "nothing", "unsure"] = ""
    """Empty as long as the agent waits."""
    words: str = ""
    on_disk: bool = False


@dataclass(slots=True)
class Witness:
    """Knows each character: who typed it, and who took it away."""

    users: set[str] = field(default_factory=set[str])
    deleted_by_user: set[str] = field(default_factory=set[str])
    told: list[Told] = field(default_factory=list[Told])
    seen: list[str] = field(default_factory=list[str])
    """Every text that the server knew of."""
    allows_twice: bool = False
    """After an edit that landed in the wrong place, too much is better than too little."""

    def user_made(self, before: str, after: str) -> None:
        """Take note of what a user did: everything that is gone is gone by their will, and what is back too."""
        gone, came = marks(before) - marks(after), marks(after) - marks(before)
        self.deleted_by_user |= gone
        self.deleted_by_user -= came
        self.users |= came
        for one in self.told:
            one.takes -= came
            one.brings -= came
            # What is still on its way may take it yet.
            if one.outcome:
                one.may_take -= came

    def user_discarded(self, after: str) -> None:
        """Take note that a user gave up whatever was not saved, also what an edit had just taken from them."""
        self.deleted_by_user |= self.users - marks(after)

    def user_saved(self, before: str, after: str) -> None:
        """Take note that a user wrote over what the disk had."""
        for one in self.told:
            if one.on_disk:
                one.brings -= marks(before) - marks(after)
                one.takes -= marks(after) - marks(before)

    def judge(self, now: str, *, saved: str) -> None:
        """Fail unless nothing was lost and everything told is true.

        Args:
            now: What the user has before them.
            saved: What the disk has.
        """
        if not self.allows_twice:
            for char in marks(now):
                assert now.count(char) == 1, f"{char!r} is there {now.count(char)} times"
        taken = {char for one in self.told if one.outcome != "nothing" for char in one.may_take}
        for char in self.users - self.deleted_by_user - taken:
            assert char in now, f"{char!r} of the user is lost"
        for one in self.told:
            # A document that was just being opened has the text that the file had before.
            there = saved if one.on_disk else now
            if one.outcome == "written":
                for char in one.brings - self.deleted_by_user - taken:
                    assert char in there, f"{char!r} was told to be there: {one.words}"
                for char in one.takes:
                    assert char not in there, f"{char!r} was told to be gone: {one.words}"
            elif one.outcome == "nothing":
                for char in one.brings:
                    assert char not in now, f"{char!r} was told not to be there: {one.words}"

    def check_words(self, words: str) -> None:
        """Fail unless the lines that are shown are those of one text that was there."""
        shown = [(int(number), line) for number, line in SHOWN.findall(words)]
        if shown and "…" not in words:
            assert any(has_lines(text, shown) for text in self.seen), words


def has_lines(text: str, shown: list[tuple[int, str]]) -> bool:
    """Tell whether a text has these lines at these numbers."""
    lines = re.split(r"\r\n|\n|\r", text)
    return all(number <= len(lines) and lines[number - 1] == line for number, line in shown)


def marks(text: str) -> set[str]:
    """Give the characters that say who typed them."""
    return set(text) - {"\n", "\r", " "}
