"""An editor's own settings are a layer; one that answers late, wrongly or not at all is served all the same."""

from collections.abc import Mapping
from typing import Any

import pytest

from tiller_server.lsp.editors.settings import EditorConfiguration
from tiller_server.lsp.jsonrpc.errors import RpcError

BOTH = {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}}
AT_START = {"permission": {"mode": "plan", "timeoutS": 5}}


class Editor:
    """A client that answers what it is told to."""

    def __init__(self, *answers: Any, workspace: object = BOTH) -> None:
        self.client_params: Mapping[str, Any] = {"capabilities": {"workspace": workspace}}
        self.asked: list[tuple[str, Any]] = []
        self._answers = list(answers)

    async def request(self, method: str, params: object = None, *, timeout_s: float | None) -> Any:
        assert timeout_s is not None
        self.asked.append((method, params))
        if method == "client/registerCapability":
            return None
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_it_is_asked_once_and_stands_above_what_was_said_at_the_start() -> None:
    editor = Editor([{"permission": {"mode": "ask"}, "skills": None, "bash": {"prefix": None}}])
    configuration = EditorConfiguration(editor)
    for _ in range(2):
        said = await configuration.settings(AT_START)
        assert said == {"permission": {"mode": "ask", "timeoutS": 5}}
    assert [method for method, _ in editor.asked] == [
        "workspace/configuration",
        "client/registerCapability",
    ]


@pytest.mark.parametrize(
    "answer",
    [
        RpcError(-32603, "no"),
        TimeoutError(),
        ConnectionError(),
        None,
        [],
        [None],
        ["tiller"],
        {"tiller": {}},
        [[]],
    ],
    ids=repr,
)
async def test_an_odd_answer_leaves_what_was_said_at_the_start(answer: object) -> None:
    assert await EditorConfiguration(Editor(answer)).settings(AT_START) == AT_START


@pytest.mark.parametrize(
    "workspace", [{}, None, 3, {"configuration": "yes"}, {"configuration": {}}]
)
async def test_an_editor_that_cannot_be_asked_is_not(workspace: object) -> None:
    editor = Editor(workspace=workspace)
    assert await EditorConfiguration(editor).settings(AT_START) == AT_START
    assert editor.asked == []


async def test_what_is_sent_along_is_taken_and_else_it_is_asked_for_again() -> None:
    editor = Editor([{"sandbox": "off"}], TimeoutError())
    configuration = EditorConfiguration(editor)
    await configuration.changed({"settings": {"tiller": {"sandbox": "auto"}}})
    assert await configuration.settings({}) == {"sandbox": "auto"}
    assert editor.asked == []
    await configuration.changed({"settings": None})
    assert await configuration.settings({}) == {"sandbox": "off"}
    await configuration.changed({})
    # Nothing was said of a change that could be read: what was in force stays.
    assert await configuration.settings({}) == {"sandbox": "off"}
    await configuration.changed({"settings": {"tiller": None}})
    assert await configuration.settings({}) == {}
