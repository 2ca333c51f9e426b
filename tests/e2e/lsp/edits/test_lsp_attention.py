"""What an editor tells of its user: the model reads it, edits wait for it, and bad shapes hurt nobody."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.support.clients.editors import EDITS
from tests.support.clients.office import Office, opened
from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.lsp.lsp_profiles import PANEL

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

TOLD = "agent/editorContext"


@pytest.fixture
async def office(ground: Ground) -> AsyncGenerator[Office]:
    ground.configure()
    async with opened(ground) as office:
        yield office


def context(uri: str, **focus: Any) -> dict[str, Any]:
    here = {"uri": uri, "version": 1, "selections": [], "visible": [], **focus}
    return {"focus": here, "open": [uri]}


def heard(office: Office) -> list[str]:
    """Give what the user said in the last request to the model."""
    said = office.ground.provider.requests[-1]["body"]["messages"]
    return [
        one["content"]
        if isinstance(one["content"], str)
        else "".join(p["text"] for p in one["content"])
        for one in said
        if one["role"] == "user"
    ]


async def test_the_model_reads_what_the_editor_shows_once_and_what_a_prompt_says_instead(
    office: Office,
) -> None:
    office.ground.provider.script([says("ok")] * 4)
    panel = await office.seat(PANEL)
    first, second = ((office.ground.root / name).as_uri() for name in ("a.py", "b.py"))
    panel.notify(TOLD, context(first))
    await panel.request("agent/prompt", prompt("one", wait=True))
    assert "<editor-context>" in heard(office)[0]
    assert "focus: a.py" in heard(office)[0]
    await panel.request("agent/prompt", prompt("two", wait=True))
    assert heard(office)[1] == "two"
    await panel.request("agent/prompt", prompt("three", wait=True, context=context(second)))
    assert "focus: b.py" in heard(office)[2]
    await panel.request("agent/prompt", prompt("four", wait=True, context={"open": []}))
    assert heard(office)[3] == "four"


async def test_an_edit_waits_until_the_user_has_left_insert_mode(office: Office) -> None:
    path = office.ground.file("a.py", "one\n")
    change = {"path": "a.py", "content": "two\n"}
    office.ground.provider.script(
        [calls(("read", {"path": "a.py"})), calls(("write", change)), says("ok")]
    )
    panel = await office.seat(PANEL)
    panel.open(path.as_uri(), "one\n")
    stream = panel.subscribe()
    await stream.ready()
    panel.notify(TOLD, context(path.as_uri(), mode="insert"))
    await panel.request("agent/prompt", prompt("go"))
    read = await stream.wait(type="tool.ended", name="read")
    await stream.wait(type="tool.running", after=read["seq"])
    await asyncio.sleep(0.6)
    assert not any(one.get("method") in EDITS for one in panel.received)
    panel.notify(TOLD, context(path.as_uri(), mode="normal"))
    async with asyncio.timeout(1.0):
        await stream.wait(type="run.ended")
    assert panel.editor.documents[path.as_uri()].text == "two\n"


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        {"open": "a"},
        {"open": [1]},
        {"open": [], "focus": {}},
        {"open": [], "focus": {"uri": "x", "version": "1", "selections": [], "visible": []}},
        {"open": ["::bad::", "file://[", "file:///%00"], "dirty": [""]},
    ],
    ids=repr,
)
async def test_a_shape_that_does_not_fit_is_logged_and_hurts_nobody(
    office: Office, params: Any
) -> None:
    office.ground.provider.script([says("ok")])
    panel = await office.seat(PANEL)
    panel.notify(TOLD, params)
    result = await panel.request("agent/prompt", prompt("go", wait=True))
    assert result["status"] == "completed"
