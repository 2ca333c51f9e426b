"""Permission requests and questions over RPC: dialogs of the client, and their answers."""

from tests.support.clients.rpc import Json, RpcPeer, rpc_client
from tests.support.clients.server import Ground, calls, says, tool_texts

TOUCH = calls(("bash", {"command": "touch x"}))
QUESTIONS = [
    {
        "question": "Which database?",
        "options": [{"label": "PostgreSQL"}, {"label": "SQLite"}],
    },
    {"question": "Its name?"},
]


def respond(peer: RpcPeer, dialog: Json, **answer: object) -> None:
    """Answer a dialog; it has no response."""
    peer.send("extension_ui_response", **{"id": dialog["id"], **answer})


async def test_a_permission_is_a_choice_and_its_label_the_answer(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.provider.script([TOUCH, says("done")])
    async with rpc_client(ground) as peer:
        await peer.data("prompt", message="go")
        dialog = await peer.event("extension_ui_request")
        assert dialog["method"] == "select"
        assert "touch x" in dialog["title"]
        assert dialog["options"][0] == "Allow once"
        assert dialog["timeout"] > 0
        respond(peer, dialog, value="Allow once")
        await peer.event("agent_settled")
    assert (ground.root / "x").exists()


async def test_what_is_no_label_and_a_dismissed_dialog_refuse(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.provider.script([TOUCH, TOUCH, says("done")])
    async with rpc_client(ground) as peer:
        await peer.data("prompt", message="go")
        respond(peer, await peer.event("extension_ui_request"), value="Surely")
        respond(peer, await peer.event("extension_ui_request"), cancelled=True)
        await peer.event("agent_settled")
        assert [one["isError"] for one in peer.of("tool_execution_end")] == [True, True]
        # One that nobody waits for any more is dropped, and so is an unknown one.
        respond(peer, {"id": "nope"}, value="x")
        respond(peer, {"id": 7}, value="x")
        assert (await peer.data("get_state"))["isStreaming"] is False
    assert not (ground.root / "x").exists()


async def test_a_dialog_of_a_cancelled_run_is_withdrawn(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.provider.script([TOUCH])
    async with rpc_client(ground) as peer:
        await peer.data("prompt", message="go")
        dialog = await peer.event("extension_ui_request")
        await peer.data("abort")
        respond(peer, dialog, value="Allow once")
        assert (await peer.data("get_state"))["isStreaming"] is False
    assert not (ground.root / "x").exists()


async def test_the_lines_of_a_question_are_asked_one_by_one(ground: Ground) -> None:
    ground.provider.script([calls(("ask", {"questions": QUESTIONS})), says("done")])
    async with rpc_client(ground) as peer:
        await peer.data("prompt", message="go")
        first = await peer.event("extension_ui_request")
        assert (first["method"], first["title"]) == ("select", "Which database?")
        respond(peer, first, value="SQLite")
        second = await peer.event("extension_ui_request")
        assert (second["method"], second["title"]) == ("input", "Its name?")
        respond(peer, second, value="shop")
        await peer.event("agent_settled")
    (answer,) = tool_texts(ground.provider.requests[-1])
    assert "SQLite" in answer
    assert "shop" in answer


async def test_a_question_can_be_declined(ground: Ground) -> None:
    ground.provider.script([calls(("ask", {"questions": QUESTIONS})), says("done")])
    async with rpc_client(ground) as peer:
        await peer.data("prompt", message="go")
        respond(peer, await peer.event("extension_ui_request"), cancelled=True)
        await peer.event("agent_settled")
        assert len(peer.of("extension_ui_request")) == 1


async def test_the_first_answer_counts(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.provider.script([TOUCH, says("done")])
    async with rpc_client(ground) as peer:
        await peer.data("prompt", message="go")
        dialog = await peer.event("extension_ui_request")
        respond(peer, dialog, value="Allow once")
        respond(peer, dialog, cancelled=True)
        await peer.event("agent_settled")
    assert (ground.root / "x").exists()
