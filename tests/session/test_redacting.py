"""No secret reaches the transcript, the events, the model or a file of ours, however it comes."""

from dataclasses import replace
from typing import Any

import pytest

from agent_core.events import MessageDelta, MessageEnded, ThoughtDelta, ToolEnded
from agent_core.events.codec import encode
from agent_core.kernel import ToolCallId, json
from agent_core.kernel.redaction.redactor import WITHHELD, HeldValues, Redactor
from agent_core.messages import AssistantMessage, Image, Text, Thinking, ToolResultMessage, text_of
from agent_core.session.redaction import long_texts, redacted
from tests.support.session.scripted_model import ScriptedModel, both, call, say, think
from tests.support.session.sessions import Bench, bench
from tests.support.workspace.tools import echo

SECRET = "held-Value-0123456789"
TOKEN = "ghp_" + "a1B2c3D4e5" * 3


def _everything(lab: Bench) -> str:
    """Give all that was told and kept, as text."""
    _ = lab.seen()
    told = [json.encode(encode(one)).decode() for one in lab.events]
    return "\n".join((*told, *map(repr, lab.messages)))


@pytest.mark.parametrize("secret", [SECRET, TOKEN])
@pytest.mark.parametrize("size", [1, 3, 50])
async def test_a_secret_is_in_nothing_that_is_told_kept_or_shown_to_the_model(
    secret: str, size: int
) -> None:
    words = f"I saw {secret} there."
    pieces = [words[place : place + size] for place in range(0, len(words), size)]
    turns = (
        both(think(f"so {secret}!"), call("echo", {"text": secret, "deep": [{secret: secret}]})),
        say(*pieces),
    )
    model = ScriptedModel(turns)
    tool = echo()
    async with bench(model, tools=(tool,), redactor=Redactor([SECRET])) as lab:
        await lab.session.prompt(f"my key is {secret}")
        events = await lab.idle()
        assert secret not in _everything(lab)
        assert all(secret not in repr(request) for request in model.requests)
        streamed = "".join(one.text for one in events if isinstance(one, MessageDelta))
        ended = [one for one in events if isinstance(one, MessageEnded) and one.role == "assistant"]
        assert streamed == text_of(ended[-1].content)
        assert streamed.startswith("I saw [redacted:")
        assert streamed.endswith("] there.")
        # The tool itself gets what the model wrote: only what is kept and told loses it.
        assert tool.calls[0]["text"] == secret


async def test_what_was_kept_back_is_told_before_the_end() -> None:
    model = ScriptedModel([say("all of it, up to held-Va")])
    async with bench(model, redactor=Redactor([SECRET])) as lab:
        await lab.session.prompt("go")
        events = await lab.idle()
        words = [one.text for one in events if isinstance(one, MessageDelta)]
        assert words == ["all of it, up to ", "held-Va"]
        assert not [one for one in events if isinstance(one, ThoughtDelta)]


async def test_a_redactor_that_fails_withholds_and_the_session_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_self: HeldValues, text: str) -> Any:
        raise RuntimeError(text)

    monkeypatch.setattr(HeldValues, "spans", broken)
    model = ScriptedModel([call("echo", {"text": SECRET}), say(f"it was {SECRET}")])
    async with bench(model, tools=(echo(),), redactor=Redactor([SECRET])) as lab:
        await lab.session.prompt(f"my key is {SECRET}")
        events = await lab.idle()
        assert SECRET not in _everything(lab)
        (result,) = [one for one in lab.messages if isinstance(one, ToolResultMessage)]
        assert text_of(result.content) == WITHHELD
        assert [one.status for one in events if isinstance(one, ToolEnded)] == ["ok"]


def test_a_thought_that_changed_loses_its_signature_and_a_picture_stays() -> None:
    message = AssistantMessage(
        content=(
            Thinking(text=f"a {SECRET}", signature="signed"),
            Thinking(text="b", signature="signed"),
            Text(text="c"),
        ),
        api="a",
        provider="p",
        model="m",
        stop_reason="stop",
        at_ms=0,
    )
    first = Thinking(text="a [redacted:secret]", signature=None)
    redactor = Redactor([SECRET])
    assert redacted(message, redactor) == replace(message, content=(first, *message.content[1:]))
    clean = (Text(text="nothing"), Image(mime="image/png", data=TOKEN))
    assert redacted(clean, redactor) is clean


def test_long_texts_are_found_wherever_they_lie() -> None:
    content = (Text(text="one"), Image(mime="image/png", data="none"))
    details = {"a": ["two", {"b": "three"}], "n": 1, "x": None}
    result = ToolResultMessage(
        call_id=ToolCallId("c"), tool_name="t", content=content, details=details, at_ms=0
    )
    assert {"one", "two", "three"} <= set(long_texts((result,)))
    assert "none" not in set(long_texts((result,)))


def test_json_in_a_value_keeps_its_shape_without_the_secret() -> None:
    result = ToolResultMessage(
        call_id=ToolCallId("c"), tool_name="t", content=(), details={"a": [f"x {SECRET}", 1], SECRET: None}, at_ms=0
    )  # fmt: skip
    expected = {"a": ["x [redacted:secret]", 1], "[redacted:secret]": None}
    assert redacted(result, Redactor([SECRET])) == replace(result, details=expected)


@pytest.mark.parametrize("value", [None, True, 7, 1.5, b"bytes", Text], ids=repr)
def test_what_holds_no_words_is_the_same(value: object) -> None:
    assert redacted(value, Redactor([SECRET])) is value
    assert list(long_texts(value)) == []
