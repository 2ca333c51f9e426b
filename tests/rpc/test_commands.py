"""Every command over RPC: its response, and the state after it."""

import json
from pathlib import Path

import pytest

from tests.support.clients.rpc import Json, RpcPeer, rpc_client
from tests.support.clients.server import Ground, calls, says
from tiller_server.rpc.server import HANDLERS

COMMANDS = (
    *("prompt", "steer", "follow_up", "abort", "clear_queue", "new_session", "get_state"),
    *("set_model", "cycle_model", "get_available_models", "set_thinking_level"),
    *("cycle_thinking_level", "get_available_thinking_levels", "set_steering_mode"),
    *("set_follow_up_mode", "compact", "set_auto_compaction", "set_auto_retry", "abort_retry"),
    *("bash", "abort_bash", "get_session_stats", "export_html", "switch_session", "fork", "clone"),
    *("get_fork_messages", "get_entries", "get_tree", "get_last_assistant_text"),
    *("set_session_name", "get_messages", "get_commands"),
)


def test_every_command_of_the_reference_is_served() -> None:
    assert set(HANDLERS) == set(COMMANDS)


async def talk(peer: RpcPeer, text: str = "go") -> None:
    """Send a prompt and wait until all is done."""
    await peer.data("prompt", message=text)
    await peer.event("agent_settled")


async def test_the_state_of_a_new_session(ground: Ground) -> None:
    async with rpc_client(ground, title="Totals") as peer:
        state = await peer.data("get_state")
        assert state.pop("sessionId")
        model = state.pop("model")
        assert state == {
            "thinkingLevel": "off",
            "isStreaming": False,
            "isCompacting": False,
            "steeringMode": "one-at-a-time",
            "followUpMode": "one-at-a-time",
            "sessionName": "Totals",
            "autoCompactionEnabled": True,
            "messageCount": 0,
            "pendingMessageCount": 0,
        }
        assert (model["provider"], model["id"], model["contextWindow"]) == ("lab", "m", 32000)
        assert await peer.data("get_messages") == {"messages": []}
        assert await peer.data("get_last_assistant_text") == {}
        assert await peer.data("get_fork_messages") == {"messages": []}
        assert await peer.data("clear_queue") == {"steering": [], "followUp": []}
        for command in ("abort", "abort_bash", "abort_retry"):
            assert await peer.data(command) is None


async def test_a_conversation_can_be_read(ground: Ground) -> None:
    ground.provider.script([calls(("bash", {"command": "echo hi"}), text="Look:"), says("Done.")])
    async with rpc_client(ground) as peer:
        await talk(peer)
        messages = (await peer.data("get_messages"))["messages"]
        roles = [one["role"] for one in messages]
        assert roles == ["user", "assistant", "toolResult", "assistant"]
        assert messages[1]["api"] == "openai-completions"
        assert await peer.data("get_last_assistant_text") == {"text": "Done."}
        said = await peer.data("get_fork_messages")
        assert [one["text"] for one in said["messages"]] == ["go"]
        listed = await peer.data("get_entries")
        lines = [json.loads(one) for one in ground.sessions()[0].read_text("utf-8").splitlines()]
        assert listed["entries"] == lines[1:]
        last = [one["id"] for one in lines if one["type"] == "message"][-1]
        assert listed["leafId"] == last
        first = lines[1]["id"]
        assert (await peer.data("get_entries", since=first))["entries"] == lines[2:]
        assert await peer.error("get_entries", since="nope") == "Entry not found: nope"
        tree = await peer.data("get_tree")
        assert tree["leafId"] == last
        assert chain(tree["tree"]) == [one["id"] for one in lines[1:]]
        state = await peer.data("get_state")
        assert (state["messageCount"], state["sessionFile"]) == (4, str(ground.sessions()[0]))


def chain(nodes: list[Json]) -> list[str]:
    """Return the ids of a tree that has one branch."""
    return [nodes[0]["entry"]["id"], *chain(nodes[0]["children"])] if nodes else []


async def test_statistics_count_messages_tokens_and_calls(ground: Ground) -> None:
    usage = {"input": 100, "output": 7}
    turn = {**calls(("bash", {"command": "echo hi"})), "usage": usage}
    ground.provider.script([turn, {"text": "Done.", "usage": usage}])
    async with rpc_client(ground) as peer:
        await talk(peer)
        stats = await peer.data("get_session_stats")
    assert stats.pop("sessionId")
    assert stats.pop("sessionFile") == str(ground.sessions()[0])
    context = stats.pop("contextUsage")
    assert (context["tokens"], context["contextWindow"]) == (107, 32000)
    assert stats == {
        "userMessages": 1,
        "assistantMessages": 2,
        "toolCalls": 1,
        "toolResults": 1,
        "totalMessages": 4,
        "tokens": {"input": 200, "output": 14, "cacheRead": 0, "cacheWrite": 0, "total": 214},
        "cost": 0,
    }


async def test_sessions_are_begun_opened_forked_and_cloned(ground: Ground) -> None:
    ground.provider.script([says("One."), says("Two."), says("Three.")])
    async with rpc_client(ground) as peer:
        await talk(peer, "first")
        await talk(peer, "second")
        before = await peer.data("get_state")
        second = (await peer.data("get_fork_messages"))["messages"][1]
        forked = await peer.data("fork", entryId=second["entryId"])
        assert forked == {"text": "second", "cancelled": False}
        assert await peer.data("get_last_assistant_text") == {"text": "One."}
        assert await peer.data("new_session") == {"cancelled": False}
        assert (await peer.data("get_state"))["messageCount"] == 0
        switched = await peer.data("switch_session", sessionPath=before["sessionFile"])
        assert switched == {"cancelled": False}
        assert (await peer.data("get_state"))["sessionId"] == before["sessionId"]
        assert await peer.data("clone") == {"cancelled": False}
        cloned = await peer.data("get_state")
        assert cloned["sessionId"] != before["sessionId"]
        assert cloned["messageCount"] == 4
        # Events are those of the session in front.
        await talk(peer, "third")
        assert await peer.data("get_last_assistant_text") == {"text": "Three."}
        assert "no session" in await peer.error("switch_session", sessionPath="nope")
        assert "nope.jsonl" in await peer.error("switch_session", sessionPath="nope.jsonl")
        assert "entry" in await peer.error("fork", entryId="nope")
        assert (await peer.data("get_state"))["sessionId"] == cloned["sessionId"]


async def test_a_file_that_is_no_session_of_tiller_is_refused(ground: Ground) -> None:
    text = ground.file("notes.jsonl", "no session\n")
    header = {"type": "session", "version": 3, "id": "x", "timestamp": 0, "cwd": "/"}
    other = ground.file("other.jsonl", json.dumps(header) + "\n")
    async with rpc_client(ground) as peer:
        assert "no session header" in await peer.error("switch_session", sessionPath=str(text))
        assert "sessions import" in await peer.error("switch_session", sessionPath=str(other))


async def test_the_configuration_is_changed(ground: Ground) -> None:
    ground.configure(scopedModels=["lab/m", "embedded/repair"])
    async with rpc_client(ground) as peer:
        models = (await peer.data("get_available_models"))["models"]
        assert {"lab/m", "embedded/repair"} == {f"{one['provider']}/{one['id']}" for one in models}
        assert (await peer.data("set_model", provider="lab", modelId="m"))["id"] == "m"
        missing = await peer.error("set_model", provider="lab", modelId="n")
        assert missing == "Model not found: lab/n"
        cycled = await peer.data("cycle_model")
        assert cycled["model"]["id"] == "repair"
        assert cycled["isScoped"] is False
        assert (await peer.data("get_state"))["model"]["id"] == "repair"
        assert await peer.data("get_available_thinking_levels") == {"levels": ["off"]}
        assert await peer.data("cycle_thinking_level") is None
        await peer.data("set_thinking_level", level="high")
        await peer.data("set_steering_mode", mode="all")
        await peer.data("set_follow_up_mode", mode="all")
        await peer.data("set_auto_compaction", enabled=False)
        await peer.data("set_session_name", name=" Totals ")
        state = await peer.data("get_state")
        names = ("steeringMode", "followUpMode", "autoCompactionEnabled", "sessionName")
        assert [state[name] for name in names] == ["all", "all", False, "Totals"]
        assert await peer.error("set_session_name", name=" ") == "Session name cannot be empty"
        assert "level must be one of off" in await peer.error("set_thinking_level", level="nope")
        assert "mode must be one of all" in await peer.error("set_steering_mode", mode="nope")
        assert "enabled must be" in await peer.error("set_auto_compaction", enabled="yes")
        assert "tiller config set retry.enabled" in await peer.error(
            "set_auto_retry", enabled=False
        )
        while not peer.of("session_info_changed"):
            await peer.next()
    assert peer.of("session_info_changed") == [{"type": "session_info_changed", "name": "Totals"}]


async def test_a_command_of_the_user_is_run_and_streamed(ground: Ground) -> None:
    ground.provider.script([says("Done.")])
    async with rpc_client(ground) as peer:
        await talk(peer)
        name = peer.send("bash", command="echo out; exit 3")
        answer = await peer.response(name)
        assert answer["data"] == {
            "output": "out\n",
            "exitCode": 3,
            "cancelled": False,
            "truncated": False,
        }
        assert peer.of("bash_execution_update") == [
            {"type": "bash_execution_update", "id": name, "delta": "out\n"}
        ]
        messages = (await peer.data("get_messages"))["messages"]
        assert messages[-1]["role"] == "bashExecution"
        running = peer.send("bash", command="echo begun; sleep 60", excludeFromContext=True)
        await peer.event("bash_execution_update")
        assert "is running" in await peer.error("bash", command="true")
        await peer.data("abort_bash")
        ended = await peer.response(running)
        assert ended["data"]["cancelled"] is True
        assert ended["data"]["output"] == "begun\n"
        assert "exitCode" not in ended["data"]


async def test_a_conversation_is_compacted(ground: Ground) -> None:
    ground.configure(compaction={"keepRecentTokens": 1, "reserveTokens": 1000})
    ground.provider.script([says("One."), says("Two."), says("The summary."), says("The rest.")])
    async with rpc_client(ground) as peer:
        assert await peer.error("compact")
        await talk(peer, "first")
        await talk(peer, "second")
        done = await peer.data("compact", customInstructions="Names of files")
        assert "The summary." in done["summary"]
        assert {"firstKeptEntryId", "tokensBefore", "estimatedTokensAfter"} < set(done)
        assert (await peer.data("get_state"))["isCompacting"] is False
        messages = (await peer.data("get_messages"))["messages"]
        assert messages[0]["role"] == "compactionSummary"
    (begun,), (ended,) = peer.of("compaction_start"), peer.of("compaction_end")
    assert begun == {"type": "compaction_start", "reason": "manual"}
    assert (ended["aborted"], ended["willRetry"]) == (False, False)
    assert "The summary." in ended["result"]["summary"]


async def test_a_session_is_exported(ground: Ground) -> None:
    ground.provider.script([says("Done.")])
    async with rpc_client(ground) as peer:
        assert "nothing to export" in await peer.error("export_html")
        await talk(peer)
        path = Path((await peer.data("export_html"))["path"])
        named = await peer.data("export_html", outputPath="a.html")
        assert await peer.error("export_html", outputPath="no/such/folder.html")
    assert path.parent == ground.root
    assert_private(path, "Done.")
    assert named == {"path": str(ground.root / "a.html")}


def assert_private(path: Path, text: str) -> None:
    assert text in path.read_text("utf-8")
    assert path.stat().st_mode & 0o777 == 0o600


async def test_commands_of_prompts_are_listed(ground: Ground) -> None:
    ground.file(".tiller/prompts/fix.md", "---\ndescription: Repair it.\n---\nRepair $1\n")
    async with rpc_client(ground) as peer:
        (command,) = (await peer.data("get_commands"))["commands"]
    assert (command["name"], command["source"]) == ("fix", "prompt")
    assert command["description"] == "Repair it."


@pytest.mark.parametrize(
    ("command", "fields", "problem"),
    [
        ("prompt", {}, "message must be a string"),
        ("prompt", {"message": "x", "images": "y"}, "images must be a list"),
        ("prompt", {"message": "x", "images": [1]}, "each of images must be"),
        ("prompt", {"message": "x", "streamingBehavior": "z"}, "streamingBehavior must be one of"),
        ("bash", {"command": 1}, "command must be a string"),
        ("fork", {}, "entryId must be a string"),
    ],
)
async def test_a_wrong_field_is_named(
    ground: Ground, command: str, fields: Json, problem: str
) -> None:
    async with rpc_client(ground) as peer:
        assert problem in await peer.error(command, **fields)
