"""Runs over RPC: prompts, steering, abort, and the order of what a client sees."""

from tests.support.clients.rpc import Json, rpc_client
from tests.support.clients.server import Ground, calls, says


def shape(record: Json) -> str:
    """Return a record as one word: its type, and what it is about."""
    if record["type"] == "message_update":
        return record["assistantMessageEvent"]["type"]
    role = record.get("message", {}).get("role")
    return (
        record["type"]
        if role is None or record["type"] == "turn_end"
        else f"{record['type']} {role}"
    )


TOOL_RUN = [
    "response",
    "agent_start",
    "turn_start",
    *("message_start user", "message_end user", "message_start assistant"),
    *("thinking_start", "thinking_delta", "thinking_end"),
    *("text_start", "text_delta", "text_end"),
    *("toolcall_start", "toolcall_delta", "toolcall_end", "message_end assistant"),
    *("tool_execution_start", "tool_execution_update", "tool_execution_end"),
    *("message_start toolResult", "message_end toolResult", "turn_end"),
    *("turn_start", "message_start assistant", "text_start", "text_delta", "text_end"),
    *("message_end assistant", "turn_end", "agent_end", "agent_settled"),
]


async def test_a_prompt_is_answered_first_and_its_run_is_told_in_order(ground: Ground) -> None:
    turn = calls(("bash", {"command": "echo hi"}), text="Look:")
    ground.provider.script([{**turn, "thinking": "Hm."}, says("Done.")])
    async with rpc_client(ground) as peer:
        assert await peer.data("prompt", message="go") == {"disposition": "started"}
        assert peer.types == ["response"]
        await peer.event("agent_settled")
    assert [shape(one) for one in peer.records] == TOOL_RUN
    (end,) = peer.of("agent_end")
    roles = [one["role"] for one in end["messages"]]
    assert roles == ["user", "assistant", "toolResult", "assistant"]
    assert [one["type"] for one in end["messages"][1]["content"]] == [
        "thinking",
        "text",
        "toolCall",
    ]
    assert end["messages"][1]["content"][2]["arguments"] == {"command": "echo hi"}
    assert end["messages"][3]["content"] == [{"type": "text", "text": "Done."}]
    assert peer.of("agent_settled") == [{"type": "agent_settled", "aborted": False}]


async def test_messages_that_are_sent_during_a_run_wait_in_its_queue(ground: Ground) -> None:
    ground.configure(steer={"graceS": None})
    ground.file("go.sh", "while [ ! -e go ]; do :; done\n")
    waits = calls(("bash", {"command": "sh go.sh"}))
    ground.provider.script([waits, says("steered"), says("followed"), says("prompted")])
    async with rpc_client(ground) as peer:
        await peer.data("prompt", message="go")
        await peer.event("tool_execution_start")
        assert (await peer.data("get_state"))["isStreaming"] is True
        assert "streamingBehavior" in await peer.error("prompt", message="no")
        assert await peer.data("follow_up", message="later") == {"disposition": "queued"}
        assert await peer.data("steer", message="sooner") == {"disposition": "queued"}
        queued = {"message": "last", "streamingBehavior": "followUp"}
        assert await peer.data("prompt", **queued) == {"disposition": "queued"}
        assert (await peer.data("get_state"))["pendingMessageCount"] == 3
        ground.file("go", "")
        await peer.event("agent_settled")
        assert await peer.data("get_last_assistant_text") == {"text": "prompted"}
        assert (await peer.data("get_state"))["pendingMessageCount"] == 0
    full = {"type": "queue_update", "steering": ["sooner"], "followUp": ["later", "last"]}
    assert full in peer.records
    assert len(peer.of("agent_end")) == 1
    (end,) = peer.of("agent_end")
    said = [one["content"][0]["text"] for one in end["messages"] if one["role"] == "user"]
    assert said == ["go", "sooner", "later", "last"]


async def test_abort_is_answered_when_the_run_has_ended_and_keeps_the_queue(ground: Ground) -> None:
    ground.provider.script(
        [{"text": "I ", "deltas": 2, "stall_forever_after_deltas": 2}, says("b")]
    )
    async with rpc_client(ground) as peer:
        await peer.data("prompt", message="go")
        await peer.until(lambda one: one["type"] == "message_update")
        await peer.data("follow_up", message="later")
        answer = await peer.ask("abort")
        assert answer == {
            "id": answer["id"],
            "type": "response",
            "command": "abort",
            "success": True,
        }
        assert peer.types[-3:] == ["agent_end", "agent_settled", "response"]
        assert peer.of("agent_settled") == [{"type": "agent_settled", "aborted": True}]
        (end,) = peer.of("agent_end")
        assert end["messages"][-1]["stopReason"] == "aborted"
        assert end["messages"][-1]["errorMessage"]
        assert await peer.data("clear_queue") == {"steering": [], "followUp": ["later"]}
        assert (await peer.data("get_state"))["pendingMessageCount"] == 0
        await peer.data("abort")


async def test_a_failure_of_the_model_is_the_last_message(ground: Ground) -> None:
    ground.configure(retry={"enabled": False})
    ground.provider.script([{"status": 400, "body": {"error": {"message": "no such thing"}}}])
    async with rpc_client(ground) as peer:
        await peer.data("prompt", message="go")
        await peer.event("agent_settled")
    (end,) = peer.of("agent_end")
    assert end["messages"][-1]["stopReason"] == "error"
    assert "no such thing" in end["messages"][-1]["errorMessage"]
    assert [shape(one) for one in peer.records][-6:] == [
        *("message_end user", "message_start assistant", "message_end assistant"),
        *("turn_end", "agent_end", "agent_settled"),
    ]


async def test_a_retry_is_told(ground: Ground) -> None:
    ground.configure(retry={"baseDelayMs": 1})
    ground.provider.script([{"status": 500, "body": "broken"}, says("fine")])
    async with rpc_client(ground) as peer:
        await peer.data("prompt", message="go")
        await peer.event("agent_settled")
    (begun,), (ended,) = peer.of("auto_retry_start"), peer.of("auto_retry_end")
    assert begun["attempt"] == 1
    assert begun["errorMessage"]
    assert ended == {"type": "auto_retry_end", "success": True, "attempt": 1}
    assert peer.of("agent_end")[0]["messages"][-1]["stopReason"] == "stop"


async def test_an_older_client_gets_the_whole_message_each_time(ground: Ground) -> None:
    ground.provider.script([says("Hello.")])
    async with rpc_client(ground, compat="0.73") as peer:
        answer = await peer.ask("prompt", message="go")
        assert "data" not in answer
        await peer.event("agent_end")
        await peer.data("get_state")
    assert peer.of("agent_settled") == []
    delta = next(one for one in peer.records if shape(one) == "text_delta")
    event = delta["assistantMessageEvent"]
    assert sorted(delta) == ["assistantMessageEvent", "message", "type"]
    assert sorted(event) == ["contentIndex", "delta", "partial", "type"]
    assert event["partial"] == delta["message"]
    assert delta["message"]["content"] == [{"type": "text", "text": "Hello."}]
    assert sorted(peer.of("agent_end")[0]) == ["messages", "type"]
