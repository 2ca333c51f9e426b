"""What passes between an editor and the daemon of the moment, case by case."""

import json
from typing import Any

import pytest

from tiller_server.daemon.shim.proxy import LspProxy
from tiller_server.daemon.shim.send_queue import Outgoing
from tiller_server.lsp.transport.framing import FrameReader

Json = dict[str, Any]
HELLO = b'{"v":1}\n'
GONE = {"kind": "Internal", "retryable": True, "retriggerRequest": True}


def taken(outgoing: Outgoing) -> list[Json]:
    """Give what goes out now; the hello line is left out."""
    written = bytearray()

    def write(piece: memoryview) -> int:
        written.extend(piece)
        return len(piece)

    outgoing.send(write)
    frames = FrameReader()
    frames.feed(bytes(written).removeprefix(HELLO))
    bodies: list[Json] = []
    while (body := frames.take()) is not None:
        bodies.append(json.loads(body))
    return bodies


class Talk:
    """A conversation, and what both sides have got."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.it = LspProxy(note=self.notes.append)

    def editor(self, *messages: Json) -> list[Json]:
        """Say something as the editor; gives what the daemon gets."""
        for one in messages:
            self.it.on_client(json.dumps({"jsonrpc": "2.0", **one}).encode())
        given = taken(self.it.to_daemon)
        self.it.inspect_forwarded()
        return given

    def daemon(self, *messages: Json) -> list[Json]:
        """Say something as the daemon; gives what the editor gets."""
        for one in messages:
            body = json.dumps({"jsonrpc": "2.0", **one}, separators=(",", ":")).encode()
            self.it.on_server(body)
        self.it.inspect_forwarded()
        return taken(self.it.to_editor)

    def attach(self, **options: Any) -> None:
        """Begin as every editor does."""
        self.it.daemon_came(HELLO)
        self.editor(initialize(**options))
        self.daemon({"id": 0, "result": {"capabilities": {"positionEncoding": "utf-16"}}})
        self.editor({"method": "initialized", "params": {}})

    def restart(self) -> tuple[list[Json], list[Json]]:
        """Let the daemon die and another one come; gives what the editor then the new daemon get."""
        self.it.daemon_gone()
        editor = taken(self.it.to_editor)
        return editor, self.come()

    def come(self) -> list[Json]:
        """Let a daemon come and be introduced; gives all that it gets."""
        self.it.daemon_came(HELLO)
        given = taken(self.it.to_daemon)
        assert self.daemon({"id": 0, "result": {"capabilities": {}}}) == []
        given += taken(self.it.to_daemon)
        if given[-1].get("id") == "tiller-open":
            assert self.daemon({"id": "tiller-open", "result": {}}) == []
        return given + taken(self.it.to_daemon)


def initialize(**options: Any) -> Json:
    params: Json = {"processId": 1, "capabilities": {}, "initializationOptions": options}
    return {"id": 0, "method": "initialize", "params": params}


def ask(id_: Any, method: str, **params: Any) -> Json:
    return {"id": id_, "method": method, "params": params}


def tell(method: str, **params: Any) -> Json:
    return {"method": method, "params": params}


def opened(uri: str, text: str, version: int = 1) -> Json:
    item = {"uri": uri, "languageId": "x", "version": version, "text": text}
    return tell("textDocument/didOpen", textDocument=item)


def without(message: Json) -> Json:
    return {name: value for name, value in message.items() if name != "jsonrpc"}


@pytest.fixture
def talk() -> Talk:
    """Return a conversation that has begun."""
    talk = Talk()
    talk.attach()
    return talk


def test_what_is_said_before_a_daemon_is_there_reaches_the_first_one() -> None:
    talk = Talk()
    said = [initialize(), tell("initialized"), ask(1, "agent/status")]
    talk.editor(*said)
    talk.it.daemon_came(HELLO)
    assert [without(one) for one in taken(talk.it.to_daemon)] == said


def test_a_daemon_that_dies_before_it_has_answered_is_replaced_unnoticed() -> None:
    talk = Talk()
    talk.it.daemon_came(HELLO)
    assert len(talk.editor(initialize(), ask(1, "agent/status"))) == 2
    talk.it.daemon_gone()
    talk.it.daemon_came(HELLO)
    assert [one["id"] for one in taken(talk.it.to_daemon)] == [0, 1]
    assert taken(talk.it.to_editor) == []


def test_a_new_daemon_is_told_what_the_editor_has_open(talk: Talk) -> None:
    change = tell(
        "textDocument/didChange",
        textDocument={"uri": "file:///a", "version": 2},
        contentChanges=[{"text": "unsaved"}],
    )
    talk.editor(
        opened("file:///a", "a"),
        opened("file:///b", "b"),
        change,
        tell("textDocument/didClose", textDocument={"uri": "file:///b"}),
        tell("agent/editorContext", open=[]),
        tell("workspace/didChangeConfiguration", settings={"x": 1}),
    )
    editor, daemon = talk.restart()
    assert editor == []
    assert [one["method"] for one in daemon] == [
        *("initialize", "initialized", "workspace/didChangeConfiguration"),
        *("textDocument/didOpen", "textDocument/didChange", "agent/editorContext"),
    ]
    assert without(daemon[4]) == change


def test_folders_are_told_as_they_are_now(talk: Talk) -> None:
    for added, removed in (("a", None), ("b", None), (None, "a"), (None, "first")):
        event = {
            "added": [{"uri": f"file:///{added}", "name": added}] if added else [],
            "removed": [{"uri": f"file:///{removed}", "name": removed}] if removed else [],
        }
        talk.editor(tell("workspace/didChangeWorkspaceFolders", event=event))
    _, daemon = talk.restart()
    event = daemon[2]["params"]["event"]
    assert [one["uri"] for one in event["added"]] == ["file:///b"]
    assert [one["uri"] for one in event["removed"]] == ["file:///a", "file:///first"]


def test_what_was_asked_is_answered_when_the_daemon_dies(talk: Talk) -> None:
    talk.editor(ask(1, "agent/subscribe", partialResultToken="t"), ask("1", "agent/compact"))
    editor, _ = talk.restart()
    assert [(one["id"], one["error"]["code"], one["error"]["data"]) for one in editor] == [
        (1, -32802, GONE),
        ("1", -32802, GONE),
    ]


def test_what_may_be_asked_twice_is_asked_again_once(talk: Talk) -> None:
    said = ask(1, "agent/prompt", messageId="m", content=[])
    talk.editor(said, ask(2, "agent/status"), ask(3, "agent/prompt", content=[]))
    talk.editor(ask(4, "agent/prompt", messageId="m2", content=[], wait=True))
    editor, daemon = talk.restart()
    assert [one["id"] for one in editor] == [3, 4]
    assert [one["id"] for one in daemon[2:]] == [1, 2]
    assert without(daemon[2]) == said
    editor, daemon = talk.restart()
    assert [one["id"] for one in editor] == [1, 2]
    assert [one["method"] for one in daemon] == ["initialize", "initialized"]


def test_what_comes_while_there_is_no_daemon_is_held_in_order(talk: Talk) -> None:
    talk.it.daemon_gone()
    nothing = talk.editor(
        ask(1, "agent/compact"),
        opened("file:///a", "a"),
        ask(2, "agent/prompt", content=[]),
        tell("textDocument/didSave", textDocument={"uri": "file:///a"}),
        tell("agent/ack", token="t", seq=1),
        tell("$/cancelRequest", id=1),
    )
    assert nothing == []
    assert [(one["id"], one["error"]["code"]) for one in taken(talk.it.to_editor)] == [(1, -32800)]
    assert [one["method"] for one in talk.come()] == [
        *("initialize", "initialized", "textDocument/didOpen"),
        *("agent/prompt", "textDocument/didSave"),
    ]
    assert len(talk.daemon({"id": 2, "result": {}})) == 1


def test_a_request_that_never_went_out_goes_to_the_next_daemon(talk: Talk) -> None:
    talk.it.on_client(json.dumps({"jsonrpc": "2.0", **ask(1, "agent/compact")}).encode())
    editor, daemon = talk.restart()
    assert (editor, daemon[-1]["method"]) == ([], "agent/compact")


def test_the_daemons_own_questions_die_with_it(talk: Talk) -> None:
    progress = {"token": "t", "value": {"kind": "begin", "title": "work"}}
    talk.daemon(
        ask("tiller-1", "window/showMessageRequest"),
        ask("tiller-2", "workspace/applyEdit"),
        tell("$/progress", **progress),
    )
    talk.editor({"id": "tiller-2", "result": {"applied": True}})
    editor, _ = talk.restart()
    assert [(one["method"], one["params"].get("id")) for one in editor] == [
        ("$/cancelRequest", "tiller-1"),
        ("$/progress", None),
    ]
    assert editor[1]["params"]["value"]["kind"] == "end"
    assert talk.editor({"id": "tiller-1", "result": None}) == []


def test_an_answer_to_a_dead_daemon_is_never_taken_for_one_to_the_new_one(talk: Talk) -> None:
    talk.daemon(ask("tiller-1", "window/showMessageRequest"))
    talk.restart()
    (asked,) = talk.daemon(ask("tiller-1", "workspace/applyEdit", edit={}))
    assert asked["id"] != "tiller-1"
    assert talk.editor({"id": "tiller-1", "result": {"title": "yes"}}) == []
    (answer,) = talk.editor({"id": asked["id"], "result": {"applied": True}})
    assert without(answer) == {"id": "tiller-1", "result": {"applied": True}}
    (plain,) = talk.daemon(ask("tiller-2", "workspace/applyEdit", edit={}))
    assert plain["id"] == "tiller-2"


def test_a_renamed_question_can_be_withdrawn(talk: Talk) -> None:
    talk.daemon(ask("tiller-1", "window/showMessageRequest"))
    talk.restart()
    asked, withdrawn = talk.daemon(
        ask("tiller-1", "window/showMessageRequest"), tell("$/cancelRequest", id="tiller-1")
    )
    assert withdrawn["params"] == {"id": asked["id"]}


@pytest.mark.parametrize(
    ("options", "opened_by_name", "chosen"),
    [
        ({}, None, None),
        ({}, "s1", None),
        ({"agent": {"session": {"open": "new", "lifetime": "connection"}}}, None, "latest"),
        ({"agent": {"session": {"open": {"id": "s0"}}}}, None, {"open": {"id": "s0"}}),
    ],
    ids=["unsaid", "opened", "new", "by id"],
)
def test_a_new_daemon_opens_the_session_that_the_editor_had(
    options: Json, opened_by_name: str | None, chosen: Any
) -> None:
    talk = Talk()
    talk.attach(**options)
    if opened_by_name is not None:
        talk.editor(ask(1, "agent/session/open", session="new"))
        talk.daemon({"id": 1, "result": {"session": opened_by_name}})
    talk.it.daemon_gone()
    talk.editor(ask(2, "agent/prompt"))
    daemon = talk.come()
    asked = [one["params"] for one in daemon if one["method"] == "agent/session/open"]
    assert asked == ([{"session": opened_by_name}] if opened_by_name else [])
    assert daemon[-1]["method"] == "agent/prompt"
    agent = daemon[0]["params"]["initializationOptions"].get("agent", {})
    if chosen == "latest":
        assert agent["session"] == {"open": "latest", "lifetime": "connection"}
    else:
        assert agent.get("session") == chosen


def test_a_session_that_is_not_there_any_more_is_not_asked_for_again(talk: Talk) -> None:
    talk.editor(ask(1, "agent/session/open", session="new"))
    talk.daemon({"id": 1, "result": {"session": "s1"}})
    talk.it.daemon_gone()
    talk.editor(ask(2, "agent/prompt"))
    talk.it.daemon_came(HELLO)
    talk.daemon({"id": 0, "result": {"capabilities": {}}})
    taken(talk.it.to_daemon)
    asked = ask("tiller-1", "window/showMessageRequest")
    assert len(talk.daemon(asked)) == 1  # a question comes through all the while
    assert talk.daemon({"id": "tiller-open", "error": {"code": -32803, "message": "no"}}) == []
    assert [one["method"] for one in taken(talk.it.to_daemon)] == ["agent/prompt"]
    _, daemon = talk.restart()
    assert "agent/session/open" not in [one["method"] for one in daemon]


def test_a_daemon_that_can_do_something_else_is_noted(talk: Talk) -> None:
    talk.restart()
    assert talk.notes == [
        "the new daemon can do other things; restart the language server to use them"
    ]


@pytest.mark.parametrize("there", [True, False], ids=["with a daemon", "without one"])
def test_leaving_properly_gives_zero(talk: Talk, there: bool) -> None:
    if there:
        talk.editor(ask(9, "shutdown"), tell("exit"))
    else:
        talk.it.daemon_gone()
        talk.editor(ask(9, "shutdown"))
        assert without(taken(talk.it.to_editor)[0]) == {"id": 9, "result": None}
        talk.editor(tell("exit"))
    assert talk.it.exit_code == 0


def test_exit_alone_gives_one(talk: Talk) -> None:
    talk.editor(tell("exit"))
    assert talk.it.exit_code == 1


def test_a_shutdown_that_a_daemon_died_of_is_answered(talk: Talk) -> None:
    talk.editor(ask(9, "shutdown"))
    editor, _ = talk.restart()
    assert [without(one) for one in editor] == [{"id": 9, "result": None}]


def test_when_there_will_be_no_daemon_what_is_held_is_answered_and_the_user_told(
    talk: Talk,
) -> None:
    talk.it.daemon_gone()
    talk.editor(ask(5, "agent/compact"))
    talk.it.give_up("nothing answers")
    answer, told = taken(talk.it.to_editor)
    assert (answer["id"], answer["error"]["code"]) == (5, -32802)
    assert (told["method"], told["params"]["type"]) == ("window/showMessage", 1)
