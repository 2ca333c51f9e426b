"""The system prompt is sent once; of what changes only the part that has changed is said, and nothing twice."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_core.messages import CustomMessage, Message, text_of
from agent_core.resources.instructions.system_prompt import Section
from agent_core.session.input.system_prompt import (
    CHANGED,
    Circumstances,
    Prompted,
    Prompting,
    prompt,
    told_in,
)
from agent_core.tools import ToolSpec
from tests.support.clock import FakeClock


def of(**sections: str) -> tuple[Section, ...]:
    return tuple(Section(name=name, text=text) for name, text in sections.items())


SENT = of(preamble="You are.", rules="- be", skills="one")


@pytest.mark.parametrize(
    ("now", "sent", "told", "prompted"),
    [
        pytest.param(SENT, (), {}, Prompted(system=SENT), id="the first time"),
        pytest.param(SENT, SENT, {}, Prompted(system=SENT), id="nothing changed"),
        pytest.param(
            of(preamble="You are.", rules="- be", skills="two"),
            SENT,
            {},
            Prompted(system=SENT, changed=of(skills="two")),
            id="one part changed",
        ),
        pytest.param(
            of(preamble="You are.", rules="- be", skills="two"),
            SENT,
            {"skills": "two"},
            Prompted(system=SENT),
            id="it was said already",
        ),
        pytest.param(
            SENT,
            SENT,
            {"skills": "two"},
            Prompted(system=SENT, changed=of(skills="one")),
            id="it is as it was at first",
        ),
        pytest.param(
            of(preamble="You are.", rules="- be", skills="one", folders="- x"),
            SENT,
            {},
            Prompted(system=SENT, changed=of(folders="- x")),
            id="a part has come",
        ),
        pytest.param(
            of(preamble="You are.", rules="- be"),
            SENT,
            {},
            Prompted(system=of(preamble="You are.", rules="- be")),
            id="a part has gone: all of it anew",
        ),
        pytest.param(
            of(preamble="I am.", rules="- be", skills="one"),
            SENT,
            {},
            Prompted(system=of(preamble="I am.", rules="- be", skills="one")),
            id="the part without a name has changed: all of it anew",
        ),
        pytest.param(
            SENT,
            (),
            {"skills": "old", "folders": "- x"},
            Prompted(system=SENT, changed=of(skills="one", folders="(nothing any more)")),
            id="sent anew, while the conversation says otherwise",
        ),
        pytest.param(
            SENT,
            (),
            {"folders": "(nothing any more)"},
            Prompted(system=SENT),
            id="that it has gone was said",
        ),
    ],
)
def test_what_is_sent_and_what_is_said(
    now: tuple[Section, ...],
    sent: tuple[Section, ...],
    told: dict[str, str],
    prompted: Prompted,
) -> None:
    assert prompt(now, sent=sent, told=told) == prompted


class Book:
    """Parts that a test changes."""

    def __init__(self) -> None:
        self.now = SENT
        self.prompting = Prompting(sections=self.sections, clock=FakeClock())
        self.conversation: list[Message] = []

    async def sections(self, specs: Sequence[ToolSpec]) -> tuple[Section, ...]:
        return self.now

    async def run(
        self, *, model: str = "a/b", trusted: bool = True, roots: tuple[Path, ...] = ()
    ) -> str:
        system, said = await self.prompting.of_run(
            (),
            conversation=self.conversation,
            now=Circumstances(model=model, trusted=trusted, roots=roots),
        )
        self.conversation.extend(said)
        return system


async def test_over_several_runs_the_prompt_stays_and_each_change_is_said_once() -> None:
    book = Book()
    first = await book.run()
    book.now = of(preamble="You are.", rules="- be", skills="two")
    assert [await book.run() for _ in range(3)] == [first] * 3
    (said,) = book.conversation
    assert isinstance(said, CustomMessage)
    assert (said.custom_type, said.display) == (CHANGED, False)
    assert text_of(said.content).endswith("<skills>\ntwo\n</skills>")
    assert told_in(book.conversation) == {"skills": "two"}


@pytest.mark.parametrize("other", [{"model": "c/d"}, {"trusted": False}, {"roots": (Path("/x"),)}])
async def test_in_other_circumstances_it_is_sent_anew(other: dict) -> None:
    book = Book()
    _ = await book.run()
    book.now = of(preamble="You are.", rules="- do", skills="one")
    assert "- do" in await book.run(**other)
    assert book.conversation == []


async def test_what_a_compaction_summed_up_is_said_again() -> None:
    book = Book()
    first = await book.run()
    book.now = of(preamble="You are.", rules="- be", skills="two")
    _ = await book.run()
    book.conversation.clear()
    assert await book.run() == first
    assert told_in(book.conversation) == {"skills": "two"}
