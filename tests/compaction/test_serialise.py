"""How a conversation is written down for the model that sums it up."""

from agent_core.compaction.prompts import serialise
from agent_core.messages import BashMessage, CustomMessage, Image, Text, Thinking, UserMessage
from tests.support.session.entries import AT_MS, assistant, call, result, user

CONVERSATION = """\
[User]: fix it[image image/png]

[Assistant]: I look.

[Assistant tool calls]: read(path="a.py", limit=5); bash(command="ls")

[Tool result]: text

[User]: 2 faults

[User ran a command]: make
ok

[Assistant]: done"""


def test_who_spoke_stands_before_each_and_thoughts_are_left_out() -> None:
    picture = Image(mime="image/png", data="AAAA")
    calls = (
        call("read", {"path": "a.py", "limit": 5}),
        call("bash", {"command": "ls"}, call_id="c2"),
    )
    said = [
        UserMessage(content=(Text(text="fix it"), picture), at_ms=AT_MS),
        assistant(Thinking(text="secretly"), "I look.", *calls),
        result("text"),
        CustomMessage(custom_type="lint", content=(Text(text="2 faults"),), at_ms=AT_MS),
        BashMessage(command="make", output="ok", exit_code=0, at_ms=AT_MS),
        assistant(Thinking(text="so that was it"), "done"),
    ]
    assert serialise(said) == CONVERSATION


def test_an_answer_of_thoughts_alone_leaves_no_trace() -> None:
    assert serialise([user("a"), assistant(Thinking(text="hm")), user("b")]) == (
        "[User]: a\n\n[User]: b"
    )


def test_of_a_commands_output_the_beginning_is_shown_too() -> None:
    long = BashMessage(command="make", output="o" * 2_001, exit_code=0, at_ms=AT_MS)
    assert serialise([long]) == (
        f"[User ran a command]: make\n{'o' * 2_000}\n[… 1 more characters cut]"
    )
