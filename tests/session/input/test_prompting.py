"""The system prompt is sent once; of what changes only the part that has changed is said, and nothing twice."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_core.messages import CustomMessage, Message, text_of
from agent_core.resources.instructions import PromptSection
from agent_core.session.input.system_prompt import (
    CHANGED,
    PromptCacheKey,
    PromptUpdate,
    SystemPromptSync,
    announced_sections,
    prompt,
)
from agent_core.tools import ToolSpec
from tests.support.harness.clock import FakeClock


def of(**sections: str) -> tuple[PromptSection, ...]:
    return tuple(PromptSection(name=name, text=text) for name, text in sections.items())


SENT = of(preamble="You are.", rules="- be", skills="one")


@pytest.mark.parametrize(
    ("now", "sent", "told", "prompted"),
    [
        pytest.param(SENT, (), {}, PromptUpdate(system=SENT), id="the first time"),
        pytest.param(SENT, SENT, {}, PromptUpdate(system=SENT), id="nothing changed"),
        pytest.param(
            of(preamble="You are.", rules="- be", skills="two"),
            SENT,
            {},
            PromptUpdate(system=SENT, changed=of(skills="two")),
            id="one part changed",
        ),
        pytest.param(
            of(preamble="You are.", rules="- be", skills="two"),
            SENT,
            {"skills": "two"},
            PromptUpdate(system=SENT),
            id="it was said already",
        ),
        pytest.param(
            SENT,
            SENT,
            {"skills": "two"},
            PromptUpdate(system=SENT, changed=of(skills="one")),
            id="it is as it was at first",
        ),
        pytest.param(
            of(preamble="You are.", rules="- be", skills="one", folders="- x"),
            SENT,
            {},
            PromptUpdate(system=SENT, changed=of(folders="- x")),
            id="a part has come",
        ),
        pytest.param(
            of(preamble="You are.", rules="- be"),
            SENT,
            {},
            PromptUpdate(system=of(preamble="You are.", rules="- be")),
            id="a part has gone: all of it anew",
        ),
        pytest.param(
            of(preamble="I am.", rules="- be", skills="one"),
            SENT,
            {},
            PromptUpdate(system=of(preamble="I am.", rules="- be", skills="one")),
            id="the part without a name has changed: all of it anew",
        ),
        pytest.param(
            SENT,
            (),
            {"skills": "old", "folders": "- x"},
            PromptUpdate(system=SENT, changed=of(skills="one", folders="(nothing any more)")),
            id="sent anew, while the conversation says otherwise",
        ),
        pytest.param(
            SENT,
            (),
            {"folders": "(nothing any more)"},
            PromptUpdate(system=SENT),
            id="that it has gone was said",
        ),
    ],
)
def test_what_is_sent_and_what_is_said(
    now: tuple[PromptSection, ...],
    sent: tuple[PromptSection, ...],
    told: dict[str, str],
    prompted: PromptUpdate,
) -> None:
    assert prompt(now, sent=sent, announced=told) == prompted


class Book:
    """Parts that a test changes."""

    def __init__(self) -> None:
        self.now = SENT
        self.prompting = SystemPromptSync(sections=self.sections, clock=FakeClock())
        self.conversation: list[Message] = []

    async def sections(self, specs: Sequence[ToolSpec], topic: str) -> tuple[PromptSection, ...]:
        return self.now

    async def run(
        self, *, model: str = "a/b", trusted: bool = True, roots: tuple[Path, ...] = ()
    ) -> str:
        system, said = await self.prompting.of_run(
            (),
            conversation=self.conversation,
            now=PromptCacheKey(model=model, trusted=trusted, roots=roots),
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
    assert announced_sections(book.conversation) == {"skills": "two"}


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
    assert announced_sections(book.conversation) == {"skills": "two"}
