"""The transcript becomes what one model accepts: every rule of it, on values."""

from dataclasses import replace

from hypothesis import given, strategies as st

from agent_core.kernel import ToolCallId
from agent_core.messages import (
    AssistantContent,
    AssistantMessage,
    BashMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Image,
    Message,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from agent_core.providers.messages.request_options import BRANCH_LEAD, normalise_messages
from tests.providers.replay import LAB

PICTURE = Image(mime="image/png", data="aWs=")


def user(*content: UserContent | str) -> UserMessage:
    parts = tuple(Text(text=part) if isinstance(part, str) else part for part in content)
    return UserMessage(content=parts, at_ms=0)


def answer(
    *content: AssistantContent, stop: StopReason = "stop", model: str = "m"
) -> AssistantMessage:
    return AssistantMessage(
        content=content,
        api="openai-completions",
        provider="lab",
        model=model,
        stop_reason=stop,
        at_ms=0,
    )


def asks(call: str, name: str = "read") -> ToolCall:
    return ToolCall(id=ToolCallId(call), name=name, arguments={})


def result(call: str, *content: UserContent, name: str = "read") -> ToolResultMessage:
    return ToolResultMessage(
        call_id=ToolCallId(call), tool_name=name, content=content or (Text(text="done"),), at_ms=0
    )


def missing(call: str) -> ToolResultMessage:
    return replace(result(call, Text(text="No result provided")), is_error=True)


def sent(*messages: Message, images: bool = True) -> tuple[object, ...]:
    return normalise_messages(messages, replace(LAB, images=images), call_id=lambda raw: raw)


def test_a_plain_conversation_stays_as_it_is():
    talk = (user("go"), answer(asks("a")), result("a"), answer(Text(text="ok")), user("thanks"))
    assert sent(*talk) == talk


def test_an_orphan_call_in_the_middle_gets_a_result_before_the_next_words():
    first, last = answer(asks("a")), user("next")
    assert sent(user("go"), first, last) == (user("go"), first, missing("a"), last)


def test_an_orphan_call_at_the_end_gets_a_result():
    only = answer(asks("a"), asks("b"))
    assert sent(only, result("a")) == (only, result("a"), missing("b"))


def test_failed_and_aborted_answers_are_left_out_with_their_results():
    for stop in ("error", "aborted"):
        broken = answer(Text(text="half"), asks("a"), stop=stop)
        assert sent(user("go"), broken, result("a"), user("again")) == (user("go"), user("again"))


def test_results_come_in_the_order_of_their_calls_and_before_words_that_came_between():
    both = answer(asks("a"), asks("b"))
    mixed = sent(both, result("b"), user("wait"), result("a"))
    assert mixed == (both, result("a"), result("b"), user("wait"))


def test_a_result_without_its_call_is_left_out_and_so_is_a_second_one():
    both = answer(asks("a"))
    assert sent(result("x"), both, result("a"), result("a")) == (both, result("a"))


def test_ids_that_come_again_in_a_later_answer_are_told_apart():
    first, second = answer(asks("call_0")), answer(asks("call_0"))
    turns = sent(first, result("call_0"), second, result("call_0"))
    assert turns[:2] == (first, result("call_0"))
    assert isinstance(turns[2], AssistantMessage)
    assert isinstance(turns[3], ToolResultMessage)
    assert turns[2].tool_calls[0].id == turns[3].call_id != "call_0"
    assert turns == sent(first, result("call_0"), second, result("call_0"))


def test_ids_that_become_alike_are_told_apart():
    both = answer(asks("a b"), asks("a.b"))
    turns = normalise_messages(
        [both, result("a.b"), result("a b")],
        LAB,
        call_id=lambda raw: raw.replace(" ", "_").replace(".", "_"),
    )
    assert isinstance(turns[0], AssistantMessage)
    ids = [call.id for call in turns[0].tool_calls]
    assert len(set(ids)) == 2
    assert [turn.call_id for turn in turns[1:] if isinstance(turn, ToolResultMessage)] == ids


def test_own_thoughts_stay_when_they_say_or_sign_something():
    kept = (
        Thinking(text="hm"),
        Thinking(text="", signature="sig"),
        Thinking(text="", signature="x", redacted=True),
    )
    own = answer(*kept, Thinking(text=" \n"), Text(text="ok", signature="s"))
    assert sent(own) == (answer(*kept, Text(text="ok", signature="s")),)


def test_thoughts_and_signatures_of_another_model_are_dropped():
    other = answer(
        Thinking(text="hm", signature="sig"),
        Text(text="ok", signature="s"),
        replace(asks("a"), signature="t"),
        model="another",
    )
    assert sent(other, result("a")) == (
        answer(Text(text="ok"), asks("a"), model="another"),
        result("a"),
    )


def test_an_answer_that_only_thought_for_another_model_is_left_out():
    assert sent(user("a"), answer(Thinking(text="hm"), model="another")) == (user("a"),)


def test_pictures_become_words_for_a_model_without_eyes():
    asked = answer(asks("a"))
    turns = sent(
        user("look", PICTURE, PICTURE, "there", PICTURE),
        asked,
        result("a", PICTURE, PICTURE),
        images=False,
    )
    gone = "(image omitted: model does not support images)"
    tool_gone = "(tool image omitted: model does not support images)"
    assert turns == (user("look", gone, "there", gone), asked, result("a", Text(text=tool_gone)))


def test_a_command_of_the_user_is_told():
    ran = BashMessage(command="make", output="no\n", exit_code=2, at_ms=0)
    quiet = BashMessage(command="true", output="", exit_code=0, at_ms=0)
    stopped = BashMessage(
        command="x",
        output="```",
        exit_code=None,
        cancelled=True,
        truncated=True,
        full_output="/t",
        at_ms=0,
    )
    hidden = BashMessage(
        command="secret", output="", exit_code=0, exclude_from_context=True, at_ms=0
    )
    assert sent(ran, quiet, stopped, hidden) == (
        user("Ran `make`\n```\nno\n```\n\nCommand exited with code 2"),
        user("Ran `true`\n(no output)"),
        user(
            "Ran `x`\n````\n```\n````\n\n(command cancelled)\n\n[Output truncated. Full output: /t]"
        ),
    )


def test_summaries_and_custom_words_are_the_users():
    turns = sent(
        CompactionSummaryMessage(summary="did A", tokens_before=9, at_ms=0),
        BranchSummaryMessage(summary="tried B", from_id="x", at_ms=0),
        CustomMessage(custom_type="note", content=(Text(text="C"),), at_ms=0),
    )
    assert turns == (
        user(
            "The conversation before this point was compacted into this summary:\n\n<summary>\ndid A\n</summary>"
        ),
        user(f"{BRANCH_LEAD}\n\n<summary>\ntried B\n</summary>"),
        user("C"),
    )


any_id = st.sampled_from(["", "a", "b", "call_0", "a|b", "ä"])
any_message = st.one_of(
    st.just(user("words")),
    st.builds(
        lambda ids, stop: answer(Text(text="t"), *map(asks, ids), stop=stop),
        st.lists(any_id, max_size=4),
        st.sampled_from(["stop", "tool_use", "length", "error", "aborted"]),
    ),
    any_id.map(result),
)


@given(st.lists(any_message, max_size=25))
def test_every_call_has_exactly_one_result_right_behind_it(messages: list[Message]):
    seen: list[str] = []
    waiting: list[str] = []
    for turn in normalise_messages(messages, LAB, call_id=lambda raw: raw.replace("ä", "_")):
        match turn:
            case ToolResultMessage():
                assert turn.call_id == waiting.pop(0)
            case AssistantMessage():
                assert waiting == []
                assert turn.stop_reason not in ("error", "aborted")
                waiting = [call.id for call in turn.tool_calls]
                seen += waiting
            case UserMessage():
                assert waiting == []
    assert waiting == []
    assert all(seen)
    assert len(set(seen)) == len(seen)
