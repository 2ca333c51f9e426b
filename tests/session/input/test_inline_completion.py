"""Completion at the cursor: what the model is sent, what of its answer is inserted, and when it is asked."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from agent_core.events import Budgets
from agent_core.kernel.errors import ModelUnknown, PriceUnknown, ProviderError
from agent_core.messages import UserMessage, text_of
from agent_core.session.context import SessionOptions
from agent_core.session.input.inline_completion import (
    AFTER_CHARS,
    BEFORE_CHARS,
    PAUSE_S,
    TYPED_CHARS,
    CursorContext,
    insertion,
)
from tests.support.harness.clock import FakeClock, HeldClock
from tests.support.session.scripted_model import SCRIPTED_FACTS, Gate, ScriptedModel, Turn, say
from tests.support.session.sessions import WAIT_S, bench

FACTS = replace(SCRIPTED_FACTS, api="openai-completions")


def place(before: str, after: str = "") -> CursorContext:
    return CursorContext(
        path=Path("/project/sums.py"), language="python", before=before, after=after
    )


def scripted(*turns: Turn) -> ScriptedModel:
    """Make a model that counts as a language model."""
    return ScriptedModel(turns, facts=FACTS)


@pytest.mark.parametrize(
    ("before", "answer", "after", "inserted"),
    [
        ("def add(a, b):\n    ", "return a + b", "\n", "return a + b"),
        ("def add(a, b):\n    ", "```python\nreturn a + b\n```", "\n", "return a + b"),
        ("def add(a, b):\n    ", "    return a + b\n", "\n", "return a + b"),
        ("    ret", "    return a + b", "", "urn a + b"),
        ("    ret", "return a + b", "", "urn a + b"),
        ("total = sum(", "values)", ")\n", "values"),
        ("total = sum(", "f(values)", ")\n", "f(values)"),
        ('name = "', 'Ada"', '"\n', "Ada"),
        ("if a:\n    x = 1\n", "else:\n    x = 2\nprint(x)\n", "print(x)\n", "else:\n    x = 2"),
        ("x = ", "<think>one or two</think>1", "", "1"),
        ("a\r\nb = [", "\n    1,\n]", "", "\r\n    1,\r\n]"),
        ("x = 1", " \n", "", ""),
        ("x = 1", "", "", ""),
        ("x = 1", "x = 1", "", ""),
    ],
)
def test_only_what_is_missing_at_the_cursor_is_inserted(
    before: str, answer: str, after: str, inserted: str
) -> None:
    assert insertion(answer, before=before, after=after) == inserted


async def test_the_model_is_sent_the_text_around_the_cursor_and_nothing_is_stored() -> None:
    model = scripted(say("return a + b"))
    async with bench(model) as b:
        entries = len(b.session.info.entries)
        before = "#" * BEFORE_CHARS + "def add(a, b):\n    "
        completed = await b.session.models.completions.complete(
            place(before, "z" * (AFTER_CHARS + 1)), trigger="invoked"
        )
        assert completed == "return a + b"
        assert len(b.session.info.entries) == entries
        assert b.session.info.snapshot().state == "idle"
    (request,) = model.requests
    (message,) = request.messages
    assert isinstance(message, UserMessage)
    text = text_of(message.content)
    assert text.startswith("File: sums.py (python)\n\n<before>\n")
    assert f"{before[-BEFORE_CHARS:]}</before>\n<after>{'z' * AFTER_CHARS}\n</after>" in text
    assert not request.tools
    assert request.purpose == "completion"


async def test_while_the_user_types_the_completion_no_model_is_asked_again() -> None:
    model = scripted(say("return a + b"), say("# other"))
    async with bench(model) as b:
        completions = b.session.models.completions
        before = "def add(a, b):\n    "
        assert await completions.complete(place(before), trigger="automatic") == "return a + b"
        typed = await completions.complete(place(before + "retu"), trigger="automatic")
        assert typed == "rn a + b"
        assert len(model.requests) == 1
        assert await completions.complete(place(before + "rex"), trigger="automatic") == "# other"
    assert len(model.requests) == 2


async def test_the_last_completion_is_not_shown_at_another_place() -> None:
    model = scripted(say("x = 1"), say("y = 2"), say("z = 3"))
    async with bench(model) as b:
        completions = b.session.models.completions
        assert await completions.complete(place(""), trigger="invoked") == "x = 1"
        assert await completions.complete(place("# note\n"), trigger="invoked") == "y = 2"
        long = "# " + "n" * TYPED_CHARS + "\n"
        assert await completions.complete(place(long), trigger="invoked") == "z = 3"
        assert await completions.complete(place(f"{long}z "), trigger="invoked") == "= 3"


async def test_a_newer_request_cancels_the_one_before_with_its_call() -> None:
    gate = Gate()
    model = scripted([gate], say("second"))
    texts: dict[str, str] = {}
    async with bench(model) as b, anyio.create_task_group() as group:
        completions = b.session.models.completions

        async def first() -> None:
            texts["first"] = await completions.complete(place("a"), trigger="invoked")

        group.start_soon(first)
        with anyio.fail_after(WAIT_S):
            await gate.reached.wait()
        texts["second"] = await completions.complete(place("ab"), trigger="invoked")
    assert texts == {"first": "", "second": "second"}
    assert model.left_early == 1


async def test_only_who_asks_is_answered_without_a_pause_in_typing() -> None:
    clock = HeldClock()
    model = scripted(say("now"), say("later"))
    texts: list[str] = []
    async with bench(model, clock=clock) as b, anyio.create_task_group() as group:
        completions = b.session.models.completions
        assert await completions.complete(place("a"), trigger="invoked") == "now"

        async def type_on() -> None:
            texts.append(await completions.complete(place("b"), trigger="automatic"))

        group.start_soon(type_on)
        await anyio.wait_all_tasks_blocked()
        assert len(model.requests) == 1
        clock.advance(PAUSE_S)
    assert texts == ["later"]


async def test_the_model_of_the_setting_is_asked_and_secrets_are_removed() -> None:
    key = "sk-ant-api03-" + "k9" * 24
    model = scripted(say("x"))
    async with bench(model, options=SessionOptions(completion_model="scripted/model-1")) as b:
        completions = b.session.models.completions
        assert await completions.complete(place(f'KEY = "{key}"\n'), trigger="invoked") == "x"
    assert key not in repr(model.requests)


async def test_a_model_that_cannot_complete_is_named() -> None:
    async with bench(ScriptedModel()) as b:
        with pytest.raises(ModelUnknown, match=r"scripted/model-1 is no language model"):
            _ = await b.session.models.completions.complete(place("a"), trigger="invoked")


async def test_a_model_without_a_price_is_not_asked_under_a_budget_of_money() -> None:
    async with bench(scripted(), budgets=Budgets(usd=1.0)) as b:
        with pytest.raises(PriceUnknown):
            _ = await b.session.models.completions.complete(place("a"), trigger="invoked")


async def test_a_model_that_fails_or_does_not_answer_is_reported() -> None:
    down = ProviderError("the provider is down", reason="invalid_request", provider="scripted")
    held: Sequence[Turn] = (down, [Gate()])
    async with bench(scripted(*held), clock=FakeClock()) as b:
        completions = b.session.models.completions
        with pytest.raises(ProviderError, match="is down"):
            _ = await completions.complete(place("a"), trigger="invoked")
        with pytest.raises(ProviderError, match=r"did not answer within 0\.05 s"):
            _ = await completions.complete(place("a"), trigger="invoked", limit_s=0.05)
