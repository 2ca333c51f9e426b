"""The arguments of a call are shown while they stream: early, without secrets, in bounded size, and in few looks."""

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest

from agent_core.events import (
    Event,
    EventFeed,
    MessageEnded,
    ToolInputDelta,
    ToolRunning,
    ToolStarted,
)
from agent_core.kernel import ItemId, JsonObject, JsonValue, RunId, ToolCallId, TurnId
from agent_core.kernel.json import encode
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.session.arguments_preview import HEAD_CHARS, MOST_BYTES, TAIL_CHARS
from agent_core.session.context import EventPublisher
from agent_core.session.redaction import EventRedaction
from tests.support.harness.clock import FakeClock
from tests.support.session.scripted_model import ScriptedModel, both, call, say
from tests.support.session.sessions import bench
from tests.support.workspace.tools import echo

RUN, TURN = RunId("r"), TurnId("t")
HELD = 'held-Value/01+23"4567é89'
TOKEN = "ghp_" + "a1B2c3D4e5" * 3
RARE_SIGNS = {
    "path": "a.py",
    "text": 'é "quoted" \\ \n\t 😀😀 \u2028 end',
    "more": ["ß", {"k": "🙂"}],
}


def started(item: str = "i") -> Event:
    return ToolStarted(
        run=RUN, turn=TURN, item=ItemId(item), call=ToolCallId(item), name="write", title="write"
    )


def answered() -> Event:
    return MessageEnded(run=RUN, turn=TURN, item=ItemId("m"), role="assistant", content=())


class Stage:
    """A session's publisher with a reader of growing arguments, and a clock that a test moves."""

    def __init__(self, *held: str) -> None:
        self.clock = FakeClock()
        redaction = EventRedaction(Redactor(held), self.clock)
        self.publisher = EventPublisher(feed=EventFeed(self.clock), redaction=redaction)
        self.reader = self.publisher.subscribe(partials=True)

    def deltas(self, *events: Event) -> list[ToolInputDelta]:
        """Publish, and take what came of arguments, each on its own."""
        found = []
        for event in events:
            self.publisher.publish(event)
            found += [one.event for one in self.reader.take_now()]
        return [one for one in found if isinstance(one, ToolInputDelta)]

    def stream(
        self, pieces: Sequence[str], *, wait_s: float = 1.0, item: str = "i"
    ) -> list[JsonObject]:
        """Send the arguments of a call in pieces; return every `partial` that came."""
        deltas = self.deltas(started(item))
        for text in pieces:
            self.clock.advance(wait_s)
            deltas += self.deltas(ToolInputDelta(run=RUN, turn=TURN, item=ItemId(item), text=text))
        deltas += self.deltas(answered())
        return [one.partial for one in deltas if one.partial is not None]


def begins(part: JsonValue, whole: JsonValue) -> bool:
    """Return whether a value is the beginning of another."""
    match part, whole:
        case str(), str():
            return whole.startswith(part)
        case list(), list():
            return len(part) <= len(whole) and all(map(begins, part, whole))
        case dict(), dict():
            return [*part] == [*whole][: len(part)] and all(begins(part[k], whole[k]) for k in part)
        case _:
            return part == whole


@pytest.mark.parametrize("ascii_only", [True, False], ids=["escapes", "signs"])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_call_cut_at_every_place_grows_to_its_whole(size: int, *, ascii_only: bool) -> None:
    text = json.dumps(RARE_SIGNS, ensure_ascii=ascii_only)
    shown = Stage().stream([text[at : at + size] for at in range(0, len(text), size)])
    assert shown[-1] == RARE_SIGNS
    assert all(begins(one, RARE_SIGNS) for one in shown)
    assert all(begins(one, later) for one, later in pairwise(shown))
    assert {"path": "a.py"} in shown


@pytest.mark.parametrize("cut", range(1, len(json.dumps(RARE_SIGNS))))
def test_a_call_of_two_pieces_shows_the_beginning_and_then_the_whole(cut: int) -> None:
    text = json.dumps(RARE_SIGNS)
    shown = Stage().stream([text[:cut], text[cut:]])
    assert shown[-1] == RARE_SIGNS
    assert all(begins(one, RARE_SIGNS) for one in shown)


def test_the_raw_text_is_the_same_with_partials_and_without() -> None:
    text = json.dumps({"path": "a1.py", "content": f"key {TOKEN} and words " * 40})
    texts = []
    for partials in (True, False):
        stage = Stage()
        if not partials:
            stage.reader.close()
            stage.reader = stage.publisher.subscribe()
        deltas = stage.deltas(started())
        for at in range(0, len(text), 5):
            piece = text[at : at + 5]
            deltas += stage.deltas(ToolInputDelta(run=RUN, turn=TURN, item=ItemId("i"), text=piece))
        deltas += stage.deltas(
            answered(), ToolRunning(run=RUN, turn=TURN, item=ItemId("i"), title="", input={})
        )
        texts.append("".join(one.text for one in deltas))
        assert any(one.partial is not None for one in deltas) is partials
    assert texts[0] == texts[1]


SECRETS = [
    json.dumps({"command": f"curl -H {HELD} x", "n": 1}),
    json.dumps({"command": f"curl -H {HELD} x", "n": 1}, ensure_ascii=False),
    json.dumps({"a": f"export T={TOKEN}", "b": [f"{TOKEN}", {"c": f"\n{TOKEN}\n"}]}),
    # What a program writes that escapes more than it must.
    '{"command": "' + "".join(f"\\u{ord(sign):04x}" for sign in f"{HELD} {TOKEN} x") + '"}',
    json.dumps({"a": HELD}).replace("/", "\\/").replace("+", "\\u002B"),
    # The same key twice: the second text stands where the first stood.
    '{"a": "x", "b": "y", "a": "' + TOKEN.replace("_", "\\u005f") + '", "c": "z"}',
    json.dumps({"api_key": "Zq8vTr4mKx2nWp7cLd9s", "rest": "x" * 40}),
]


@pytest.mark.parametrize("text", SECRETS)
@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_neither_a_secret_nor_its_beginning_is_shown(text: str, size: int) -> None:
    stage = Stage(HELD)
    shown = stage.stream([text[at : at + size] for at in range(0, len(text), size)])
    for one in shown:
        for secret in (HELD, TOKEN, "Zq8vTr4mKx2nWp7cLd9s"):
            assert secret[:5] not in json.dumps(one, ensure_ascii=False), one
    assert "[redacted:" in json.dumps(shown[-1])


def test_the_beginning_of_a_secret_is_not_shown_when_another_call_begins_in_between() -> None:
    stage = Stage(HELD)
    first = stage.stream([f'{{"a": "see {HELD[:9]}'])
    second = stage.stream(['{"path": "b"}'], item="j")
    rest = stage.deltas(
        ToolInputDelta(run=RUN, turn=TURN, item=ItemId("i"), text=f"{json.dumps(HELD[9:])[1:]}}}")
    )
    last = [*rest, *stage.deltas(answered())][-1].partial
    assert (first[-1], second[-1], last) == (
        {"a": "see "},
        {"path": "b"},
        {"a": "see [redacted:secret]"},
    )


def test_what_becomes_unreadable_shows_no_more_of_a_secret() -> None:
    stage = Stage(HELD)
    shown = stage.stream([f'{{"a": "see {HELD[:9]}', "\n", "more and more text behind it"])
    assert shown == [{"a": "see "}]


def test_a_burst_is_shown_from_its_first_pieces_and_wholly_when_the_next_call_begins() -> None:
    stage = Stage()
    text = json.dumps({"path": "src/main.py", "content": "x " * 5_000})
    pieces = [text[at : at + 4] for at in range(0, len(text), 4)]
    shown = stage.stream(pieces, wait_s=0)
    assert {"path": "src/main.py", "content": ""} in shown
    assert len(shown) < 30
    assert str(shown[-1]["content"]).endswith("x x ")
    assert stage.deltas(started("j")) == []


def test_10_000_deltas_are_looked_at_ten_times_a_second_at_most() -> None:
    stage = Stage()
    text = json.dumps({"path": "a", "content": "some words\n" * 10_000})
    shown = stage.stream([text[at : at + 5] for at in range(0, 50_000, 5)], wait_s=0.003)
    assert 60 < len(shown) < 300
    assert all(len(encode(one)) <= MOST_BYTES for one in shown)


def test_long_arguments_are_shown_with_their_end_in_bounded_size() -> None:
    content = "".join(f"line {number}\n" for number in range(2_000))
    (shown,) = Stage().stream([json.dumps({"path": "p" * 300, "content": content})])
    expected = f"{content[:HEAD_CHARS]}…{content[-TAIL_CHARS:]}"
    assert shown == {"path": "p" * 300, "content": expected}
    edits: list[JsonValue] = [{"oldText": f"{n}" * 900, "newText": "\x01" * 900} for n in range(50)]
    (shown,) = Stage().stream([json.dumps({"edits": edits, "path": "a"})])
    kept = shown["edits"]
    assert isinstance(kept, list)
    assert shown["path"] == "a"
    assert kept[1:] == edits[-len(kept) + 1 :]
    assert 0 < len(encode(shown)) <= MOST_BYTES


@pytest.mark.parametrize(
    "value",
    [
        {"a": "\x01" * 5_000},
        {"a": ["😀" * 5_000] * 9},
        {str(n): "x" * 100 for n in range(900)},
        {"k" * 9_000: 1, "path": "b"},
        {"a": [*range(100_000)]},
        {"a": [[["deep" * 400] * 5] * 5] * 5},
    ],
)
def test_no_arguments_take_more_than_the_limit(value: JsonObject) -> None:
    for one in Stage().stream([json.dumps(value)]):
        assert 2 < len(encode(one)) <= MOST_BYTES


def test_without_a_reader_that_shows_them_there_are_none_and_a_late_one_gets_them() -> None:
    stage = Stage()
    stage.reader.close()
    stage.reader = stage.publisher.subscribe()
    assert stage.stream(['{"path": "a', '.py", ']) == []
    late = stage.publisher.subscribe(partials=True)
    stage.publisher.publish(ToolInputDelta(run=RUN, turn=TURN, item=ItemId("i"), text='"b": "see '))
    (delta,) = [one.event for one in late.take_now()]
    assert isinstance(delta, ToolInputDelta)
    assert delta.partial == {"path": "a.py", "b": "see "}
    late.close()
    _ = stage.reader.take_now()
    assert stage.stream(['{"path": "a"}'], item="j") == []


async def test_a_run_shows_the_arguments_before_the_tool_runs() -> None:
    first = call("echo", {"text": f"key {TOKEN}"})
    model = ScriptedModel([both(first, call("echo", {"text": "b"}, id="c2")), say("done")])
    async with bench(model, tools=(echo(),)) as lab:
        reader = lab.session.subscribe(partials=True)
        await lab.session.prompt("go")
        _ = await lab.idle()
        events = [one.event for one in reader.take_now()]
        partials = [one.partial for one in events if isinstance(one, ToolInputDelta)]
        inputs = [one.input for one in events if isinstance(one, ToolRunning)]
        assert inputs == [{"text": "key [redacted:github-token]"}, {"text": "b"}]
        assert [one for one in partials if one is not None][-2:] == inputs
