"""An answer that grows shows its whole text, whatever happens to its card, and stands there in full in the end."""

import gc
import json
import re
from itertools import accumulate
from typing import Any

import anyio
import pytest
from hypothesis import example, given, settings, strategies as st

from agent_core.channels.messaging.port import (
    DeliveryDelayed,
    DeliveryUncertain,
    RunningAnswer,
    Target,
)
from tests.support.harness.sizes import at_size
from tests.support.lark.card_schema import shown_text, shown_texts
from tests.support.lark.faults import CallFault
from tests.support.lark.stage import (
    GROUP,
    Stage,
    account_of,
    connected_stage,
    open_stage,
    until,
)
from tests.support.lark.world import Sent
from tiller_server.channels.lark.cards.marks import mark
from tiller_server.channels.lark.channel import open_lark

CARDS = "/open-apis/cardkit/v1/cards"
MESSAGES = "/open-apis/im/v1/messages"
TIMER_S = 15.0
FENCE_FIRST = re.compile(r"\A {0,3}(?:`{3,}|~{3,})[^\n]*\n")
FENCE_LAST = re.compile(r"(?:`{3,}|~{3,})\Z")
FENCE_LAST_ADDED = re.compile(r"\n(?:`{3,}|~{3,})\Z")


def head(card: dict[str, Any]) -> str:
    return card["header"]["title"]["content"].rstrip("\u200b\u200c\u200d\u2060")


def card_of(stage: Stage, sent: Sent) -> dict[str, Any]:
    """Return the card that a message shows."""
    return stage.card(sent.id).data if sent.card else json.loads(sent.content)


def cards(stage: Stage) -> list[dict[str, Any]]:
    """Return all cards, in the order of their messages."""
    return [
        card_of(stage, sent)
        for sent in stage.platform.world.messages.values()
        if sent.kind == "interactive" and not sent.deleted
    ]


def shown(stage: Stage) -> list[str]:
    """Return the texts of all cards, in the order of their messages."""
    return [shown_text(card) for card in cards(stage)]


def is_shown(text: str, stage: Stage) -> bool:
    """Return whether all elements show exactly a text, apart from fences that close and reopen a block that is cut."""
    ends = {0}
    for element in [one for card in cards(stage) for one in shown_texts(card)]:
        ends = {
            end + len(source)
            for end in ends
            for source in sources(element)
            if text.startswith(source, end)
        }
    return len(text) in ends


def sources(content: str) -> set[str]:
    """Return what an element may be of a text: as it is, without a fence at its beginning, without one at its end."""
    opened = {content, FENCE_FIRST.sub("", content)}
    return opened | {end.sub("", one) for one in opened for end in (FENCE_LAST, FENCE_LAST_ADDED)}


def kinds(stage: Stage, answer: RunningAnswer) -> list[str]:
    return [kind for kind, _ in stage.card(answer.sent.message).operations]


async def test_an_answer_grows_in_its_card_and_ends_with_the_whole_text() -> None:
    async with open_stage() as stage:
        question = stage.platform.world.say("oc_group", "hi")
        answer = await stage.channel.open_answer(
            GROUP, key="k1", reply_to=question.id, in_thread=True
        )
        card = stage.card(answer.sent.message)
        assert (head(card.data), shown(stage), answer.sent.thread) == (
            "Working", ["…"], question.thread,
        )  # fmt: skip
        for text in ("", "Hello", "Hello", "Hello world", "Other"):
            await answer.set_text(text)
        assert (shown(stage), card.is_streaming) == (["Other"], True)
        await answer.finish("Other text", "completed")
        assert (head(card.data), shown(stage), card.is_streaming) == (
            "Done", ["Other text"], False,
        )  # fmt: skip
        assert card.data["config"]["summary"] == {"content": "Other text"}
        assert kinds(stage, answer) == ["element", "element", "element", "settings", "card"]


@pytest.mark.parametrize(
    ("outcome", "title", "empty"),
    [
        ("completed", "Done", "The run ended without a text."),
        ("aborted", "Stopped", "The run was stopped before it had a text."),
        ("failed", "Failed", "The run failed before it had a text."),
    ],
)
async def test_an_answer_without_text_says_how_it_ended(
    outcome: Any, title: str, empty: str
) -> None:
    async with open_stage() as stage:
        answer = await stage.channel.open_answer(GROUP, key="k1")
        await answer.finish("", outcome)
        assert (head(stage.card(answer.sent.message).data), shown(stage)) == (title, [empty])


async def test_twelve_minutes_of_an_answer_end_with_the_full_text() -> None:
    async with connected_stage() as stage:
        answer = await stage.channel.open_answer(GROUP, key="k1")
        text = ""
        for minute in range(12):
            text += f"Minute {minute}.\n"
            await answer.set_text(text)
            await stage.pass_time(60, sleeps=TIMER_S)
            assert shown(stage) == [text]
            assert stage.card(answer.sent.message).is_streaming
        assert kinds(stage, answer).count("settings") == 1
        await answer.finish(text + "Done.", "completed")
        assert shown(stage) == [text + "Done."]


async def test_a_card_is_renewed_before_minute_eight_also_without_a_text() -> None:
    async with connected_stage() as stage:
        answer = await stage.channel.open_answer(GROUP, key="k1")
        await stage.pass_time(450, sleeps=TIMER_S)
        await until(lambda: kinds(stage, answer) == ["settings"])
        await stage.pass_time(540, sleeps=TIMER_S)
        await answer.set_text("late")
        assert kinds(stage, answer) == ["settings", "settings", "element"]


async def test_a_card_whose_ten_minutes_are_over_is_renewed_once_and_goes_on() -> None:
    async with open_stage() as stage:
        answer = await stage.channel.open_answer(GROUP, key="k1")
        await answer.set_text("a")
        stage.clock.advance(601)
        await answer.set_text("ab")
        assert shown(stage) == ["ab"]
        assert kinds(stage, answer) == ["element", "element", "settings", "element"]


@pytest.mark.parametrize("code", [200850, 300309])
async def test_a_card_that_stays_closed_is_replaced_as_a_whole(code: int) -> None:
    async with open_stage() as stage:
        answer = await stage.channel.open_answer(GROUP, key="k1")
        await answer.set_text("a")
        path = f"{CARDS}/{stage.platform.world.messages[answer.sent.message].card}/elements"
        stage.platform.faults.append(CallFault(path=path, code=code, status=400, times=99))
        for text in ("ab", "abc"):
            await answer.set_text(text)
            assert shown(stage) == [text]
        tries = [path for _, path in stage.platform.calls if "/elements/" in path]
        assert len(tries) == 3
        await answer.finish("abcd", "completed")
        assert shown(stage) == ["abcd"]


async def test_a_text_that_was_not_shown_is_replaced_by_the_next_one() -> None:
    async with open_stage() as stage:
        answer = await stage.channel.open_answer(GROUP, key="k1")
        stage.platform.faults.append(CallFault(path=CARDS, kind="apply_and_fail"))
        with pytest.raises(DeliveryUncertain):
            await answer.set_text("a")
        await answer.set_text("ab")
        stage.platform.faults.append(CallFault(path=CARDS))
        with pytest.raises(DeliveryDelayed):
            await answer.finish("abc", "completed")
        await answer.finish("abc", "completed")
        assert shown(stage) == ["abc"]


async def test_numbers_of_a_card_rise_strictly_also_in_another_process() -> None:
    async with open_stage() as stage:
        answer = await stage.channel.open_answer(GROUP, key="k1")
        token = answer.resume_token
        for number in range(3):
            stage.clock.advance(0.5)
            await answer.set_text(f"a{number}")
        stage.clock.advance(2)
        resumed = await stage.channel.open_answer(GROUP, key="k1", resume_token=token)
        assert resumed.sent == answer.sent
        await resumed.set_text("from another process")
        assert shown(stage) == ["from another process"]
        await resumed.finish("the end", "failed")
        operations = stage.card(answer.sent.message).operations
        numbers = [number for _, number in operations]
        assert numbers == sorted(set(numbers))
        assert numbers[0] >= 1
        # None was refused, which would have been repeated with a larger one.
        path = f"{CARDS}/{stage.card(answer.sent.message).id}"
        assert len(
            [called for _, called in stage.platform.calls if called.startswith(path)]
        ) == len(numbers)
        assert (shown(stage), len(stage.platform.world.messages)) == (["the end"], 1)


async def test_a_number_that_was_used_is_left_behind() -> None:
    async with open_stage() as stage:
        answer = await stage.channel.open_answer(GROUP, key="k1")
        stage.card(answer.sent.message).sequence = 5_000
        await answer.set_text("a")
        assert shown(stage) == ["a"]


async def test_an_answer_whose_first_message_is_uncertain_is_opened_once() -> None:
    async with open_stage() as stage:
        fault = CallFault(path=MESSAGES, method="POST", kind="apply_and_fail")
        stage.platform.faults.append(fault)
        with pytest.raises(DeliveryUncertain):
            await stage.channel.open_answer(GROUP, key="k1")
        answer = await stage.channel.open_answer(GROUP, key="k1")
        await answer.finish("a", "completed")
        assert (shown(stage), len(stage.platform.world.cards)) == (["a"], 1)


async def test_an_answer_that_an_earlier_process_opened_unnoticed_is_the_one_that_grows() -> None:
    async with open_stage() as stage:
        first = await stage.channel.open_answer(GROUP, key="k1")
        await first.set_text("from the first")
        async with open_lark(account_of(stage.platform), stage.clock) as channel:
            second = await channel.open_answer(GROUP, key="k1")
            await second.set_text("from the second")
            await second.finish("the end", "completed")
        assert (first.sent, shown(stage)) == (second.sent, ["the end"])


async def test_a_long_answer_goes_on_in_further_cards_and_none_is_too_large() -> None:
    async with open_stage() as stage:
        lines = [f"Line {number}: " + "value " * 20 + "\n" for number in range(600)]
        texts = [*accumulate(lines)]
        answer = await stage.channel.open_answer(GROUP, key="k1")
        for text in texts[::40]:
            await answer.set_text(text)
            assert "".join(shown(stage)) == text
        await answer.finish(texts[-1], "completed")
        assert "".join(shown(stage)) == texts[-1]
        cards = [card_of(stage, sent) for sent in stage.platform.world.messages.values()]
        assert [head(card) for card in cards] == ["Continued below"] * (len(cards) - 1) + ["Done"]
        assert len(cards) > 3


async def test_a_long_answer_that_comes_at_once_is_repeated_without_a_second_card() -> None:
    async with open_stage() as stage:
        text = "word " * 12_000
        answer = await stage.channel.open_answer(GROUP, key="k1")
        stage.platform.faults.append(CallFault(path=MESSAGES, method="POST", kind="apply_and_fail"))
        with pytest.raises(DeliveryUncertain):
            await answer.finish(text, "completed")
        await answer.finish(text, "completed")
        assert "".join(shown(stage)) == text
        assert len(stage.platform.world.messages) == 3


@pytest.mark.parametrize("can_recall", [True, False])
async def test_an_answer_that_becomes_shorter_leaves_no_old_text(can_recall: bool) -> None:
    async with open_stage() as stage:
        answer = await stage.channel.open_answer(GROUP, key="k1")
        await answer.set_text("long " * 9_000)
        assert len(shown(stage)) == 3
        await answer.set_text("short")
        if not can_recall:
            fault = CallFault(path=MESSAGES, method="DELETE", code=230026, status=400, times=9)
            stage.platform.faults.append(fault)
        await answer.finish("short", "completed")
        rest = [] if can_recall else ["The run ended without a text."] * 2
        assert (shown(stage), head(stage.card(answer.sent.message).data)) == (
            ["short", *rest], "Done",
        )  # fmt: skip


async def test_where_no_card_can_be_created_the_text_comes_as_messages() -> None:
    async with open_stage() as stage:
        stage.platform.world.accepts_cards = False
        answer = await stage.channel.open_answer(GROUP, key="k1")
        await answer.set_text("a")
        resumed = await stage.channel.open_answer(GROUP, key="k1", resume_token=answer.resume_token)
        text = "line\n" * 8_000
        await resumed.finish(text, "completed")
        messages = list(stage.platform.world.messages.values())
        contents = [json.loads(m.content)["zh_cn"]["content"][0][0]["text"] for m in messages]
        assert "".join(content[: -len(mark(""))] for content in contents) == text
        assert (messages[0].id, stage.platform.world.edits[messages[0].id]) == (
            answer.sent.message,
            1,
        )


async def test_a_card_that_was_lost_is_followed_by_the_text_as_a_message() -> None:
    async with open_stage() as stage:
        answer = await stage.channel.open_answer(GROUP, key="k1")
        stage.platform.faults.append(CallFault(path=CARDS, code=200740, status=400, times=99))
        for _ in range(2):
            await answer.finish("the answer", "completed")
        assert len(stage.platform.world.messages) == 2
        assert "the answer" in stage.last().content


async def test_calls_of_one_card_do_not_overlap() -> None:
    async with connected_stage() as stage:
        answer = await stage.channel.open_answer(GROUP, key="k1")
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(answer.set_text, f"text {number}")
        numbers = [number for _, number in stage.card(answer.sent.message).operations]
        assert numbers == sorted(set(numbers))
        assert len(numbers) == 20


async def test_an_answer_in_a_thread_stays_there_with_all_its_cards() -> None:
    async with open_stage() as stage:
        root = stage.platform.world.say("oc_group", "hi", thread="omt_1")
        thread = Target(chat="oc_group", thread="omt_1")
        answer = await stage.channel.open_answer(thread, key="k1", reply_to=root.id)
        await answer.finish("word " * 12_000, "completed")
        assert {message.thread for message in stage.platform.world.messages.values()} == {"omt_1"}


async def test_answers_that_ended_are_forgotten() -> None:
    async with open_stage() as stage:

        async def answer(number: int) -> None:
            answer = await stage.channel.open_answer(GROUP, key=f"k{number}")
            assert stage.channel._answers.count > 0
            await answer.finish("done", "completed")

        for number in range(20):
            await answer(number)
        _ = gc.collect()
        assert stage.channel._answers.count == 0


TEXTS = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
        st.sampled_from(["```\n", "x = 1\n", "foo()", "()", "ab", "\n\n", '"\\' * 900]),
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.timeout(at_size(ci=60, campaign=600))
@settings(max_examples=at_size(ci=15, campaign=300))
@given(TEXTS, st.integers(1, 400))
@example(["```", *['"\\' * 900] * 5], 1)
@example(["```" + "x" * 15_000], 1)
async def test_any_text_in_any_chunks_arrives_unchanged(chunks: list[str], repeat: int) -> None:
    async with open_stage() as stage:
        answer = await stage.channel.open_answer(GROUP, key="k1")
        whole = "".join(chunks)
        for text in accumulate(chunks):
            await answer.set_text(text)
        long = (whole + " ") * repeat if "`" not in whole and "~" not in whole else whole
        await answer.finish(long, "completed")
        expected = long if long.strip() else "The run ended without a text."
        assert is_shown(expected, stage)
