"""What hooks get of messages, growing answers, running tools and compactions, and how they choose a cut."""

from typing import Any

import anyio

from agent_core.compaction import CompactionPolicy
from agent_core.hooks import (
    Compacting,
    CompactionFailed,
    CompactionKept,
    CutChosen,
    MessageBegun,
    MessageGrown,
    SummaryGiven,
    TextGrowth,
    ThinkingGrowth,
    ToolCallGrowth,
    ToolPrinted,
)
from agent_core.kernel import EntryId, JsonObject, ToolCallId
from agent_core.messages import Text, Thinking, Usage, UserMessage
from agent_core.providers import UsageUpdate
from agent_core.session.context import SessionOptions
from agent_core.tools import ToolContext, ToolResult, text_result
from tests.support.hooks.hook_listener import Listener
from tests.support.session.scripted_model import Gate, ScriptedModel, both, call, say, think
from tests.support.session.sessions import Bench, bench
from tests.support.workspace.tools import FunctionTool, echo

BY_HAND = SessionOptions(auto_compact=False, compaction=CompactionPolicy(keep_recent_tokens=1_000))


async def go(b: Bench, text: str = "go") -> None:
    await b.session.prompt(text)
    _ = await b.idle()


async def test_the_begin_of_a_message_has_the_users_message() -> None:
    listener = Listener()
    async with bench(ScriptedModel([say("ok")]), hooks=listener.table) as b:
        await go(b, "hello")
    mine, answer = listener.of(MessageBegun)
    assert isinstance(mine.message, UserMessage)
    assert (mine.role, mine.message.content) == ("user", (Text(text="hello"),))
    assert (answer.role, answer.message) == ("assistant", None)


async def test_an_answer_grows_by_text_thinking_and_arguments() -> None:
    listener = Listener()
    answer = both(
        think("h"), think("m"), say("one "), say("two"), call("echo", {"text": "x"}, id="c1")
    )
    async with bench(
        ScriptedModel([answer, say("end")]), tools=[echo()], hooks=listener.table
    ) as b:
        await go(b)
    first = [
        one for one in listener.of(MessageGrown) if one.item == listener.of(MessageGrown)[0].item
    ]
    growth = [more for one in first for more in one.growth]
    thoughts = [more.text for more in growth if isinstance(more, ThinkingGrowth)]
    texts = [more.text for more in growth if isinstance(more, TextGrowth)]
    calls = [more for more in growth if isinstance(more, ToolCallGrowth)]
    assert ("".join(thoughts), "".join(texts)) == ("hm", "one two")
    assert {(more.index, more.call, more.tool) for more in calls} == {(0, ToolCallId("c1"), "echo")}
    assert "".join(more.text for more in calls).replace(" ", "") == '{"text":"x"}'
    assert first[-1].content == (Thinking(text="hm"), Text(text="one two"))
    kinds = [type(more) for more in growth]
    assert kinds.index(ThinkingGrowth) < kinds.index(TextGrowth) < kinds.index(ToolCallGrowth)


async def test_tokens_that_are_counted_are_no_growth() -> None:
    listener = Listener()
    counted = Gate()
    answer = [UsageUpdate(usage=Usage(input=7)), counted, *say("ok")]
    async with bench(ScriptedModel([answer]), hooks=listener.table) as b:
        await b.session.prompt("go")
        await counted.reached.wait()
        await anyio.wait_all_tasks_blocked()
        counted.release()
        _ = await b.idle()
    assert [one.text for one in listener.of(MessageGrown)] == ["ok"]


async def test_output_of_a_tool_comes_with_its_arguments() -> None:
    async def print_text(_: JsonObject, context: ToolContext) -> ToolResult:
        context.output("a")
        await anyio.lowlevel.checkpoint()
        return text_result("printed")

    listener = Listener()
    model = ScriptedModel([call("print", {"lines": [1, 2]}), say("done")])
    async with bench(model, tools=[FunctionTool("print", print_text)], hooks=listener.table) as b:
        await go(b)
    assert [(one.text, one.arguments) for one in listener.of(ToolPrinted)] == [
        ("a", {"lines": [1, 2]})
    ]


async def three_prompts(b: Bench) -> None:
    for number in range(3):
        await go(b, f"prompt {number}")


def long_answers(*more: Any) -> ScriptedModel:
    return ScriptedModel([*(say("word " * 1_500) for _ in range(3)), *more])


async def test_a_compaction_shows_what_is_kept_and_where_it_may_be_cut() -> None:
    listener = Listener(says={Compacting: SummaryGiven(summary="mine")})
    async with bench(long_answers(), hooks=listener.table, options=BY_HAND) as b:
        await three_prompts(b)
        entries = b.session.info.entries
        await b.session.compact()
        _ = await b.idle()
        asked = listener.one(Compacting)
        assert b.messages[1:] == asked.kept
        assert asked.first_kept in asked.cut_points
        assert set(asked.cut_points) <= {entry.id for entry in entries}
        assert len(asked.messages) + len(asked.kept) == 6


async def test_a_hook_summarises_less_and_keeps_more() -> None:
    chosen: list[EntryId] = []

    def from_the_second_prompt(event: Compacting) -> SummaryGiven:
        chosen.append(event.cut_points[1])
        return SummaryGiven(summary="the first prompt", first_kept=chosen[0])

    listener = Listener(says={Compacting: from_the_second_prompt})
    async with bench(long_answers(), hooks=listener.table, options=BY_HAND) as b:
        await three_prompts(b)
        await b.session.compact()
        _ = await b.idle()
        assert listener.one(CompactionKept).summary == "the first prompt"
        texts = [str(message) for message in b.messages]
        assert "the first prompt" in texts[0]
        assert "prompt 1" in texts[1]
        assert len(texts) == 5


async def test_a_model_summarises_up_to_the_cut_that_a_hook_chose() -> None:
    listener = Listener(says={Compacting: lambda event: CutChosen(first_kept=event.cut_points[-1])})
    model = long_answers(say("## Goal\nx"), say("turn"))
    async with bench(model, hooks=listener.table, options=BY_HAND) as b:
        await three_prompts(b)
        await b.session.compact()
        _ = await b.idle()
        assert not listener.one(CompactionKept).from_hook
        sent = "".join(str(request.messages) for request in model.requests[3:])
        assert all(f"prompt {number}" in sent for number in range(3))
        assert len(b.messages) == 2


async def test_a_cut_that_is_not_possible_leaves_the_conversation_as_it_was() -> None:
    given = SummaryGiven(summary="mine", first_kept=EntryId("nothing"))
    listener = Listener(says={Compacting: given})
    async with bench(long_answers(), hooks=listener.table, options=BY_HAND) as b:
        await three_prompts(b)
        before = b.messages
        await b.session.compact()
        _ = await b.idle()
        failed = listener.one(CompactionFailed)
        assert "entry nothing" in failed.error
        assert "cut_points" in failed.error
        assert b.messages == before
