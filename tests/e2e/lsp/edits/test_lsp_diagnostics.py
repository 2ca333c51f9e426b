"""The problems that an editor shows, as the model gets them: of the present text, or said to be stale."""

import copy
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest

from tests.support.clients.office import Office, opened
from tests.support.clients.server import Ground, calls, prompt, says, tool_texts
from tests.support.lsp.lsp_answers import LeavesOpen
from tests.support.lsp.lsp_profiles import PANEL, Profile

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

ASK = "agent/diagnostics"
Json = dict[str, Any]


def _able() -> Profile:
    capabilities = copy.deepcopy(PANEL.capabilities)
    capabilities["experimental"]["agent"]["diagnostics"] = {"versions": {}}
    return replace(PANEL, name="able", capabilities=capabilities)


ABLE = _able()


@pytest.fixture
async def office(ground: Ground) -> AsyncGenerator[Office]:
    ground.configure()
    async with opened(ground) as office:
        yield office


def problem(message: str, *, line: int = 0, **more: Any) -> Json:
    place = {"line": line, "character": 4}
    return {"range": {"start": place, "end": place}, "message": message, **more}


class Lints:
    """Answers with these items and remembers what was asked."""

    def __init__(self, *items: Any) -> None:
        self.asked: list[Json] = []
        self._items = items

    def __call__(self, params: Json, reply: Any) -> None:
        self.asked.append(params)
        reply({"items": list(self._items)})


async def ask(office: Office, client: Any, **arguments: Any) -> str:
    office.ground.provider.script([calls(("diagnostics", arguments)), says("done")])
    await client.request("agent/prompt", prompt("go", wait=True), timeout_s=30)
    return tool_texts(office.ground.provider.requests[-1])[-1]


def offered(office: Office) -> list[str]:
    tools = office.ground.provider.requests[-1]["body"]["tools"]
    return [one["function"]["name"] for one in tools]


async def test_the_tool_is_there_only_while_an_editor_can_answer(office: Office) -> None:
    office.ground.provider.script([says("ok")] * 3)
    panel = await office.seat(PANEL)
    await panel.request("agent/prompt", prompt("one", wait=True))
    assert "diagnostics" not in offered(office)
    async with office.visitor(ABLE):
        await panel.request("agent/prompt", prompt("two", wait=True))
        assert "diagnostics" in offered(office)
    await panel.request("agent/prompt", prompt("three", wait=True))
    assert "diagnostics" not in offered(office)
    assert panel.undeclared == []


async def test_problems_of_the_present_text_are_asked_for_by_version(office: Office) -> None:
    path = office.ground.file("a.py", "x\n")
    able = await office.seat(ABLE)
    able.open(path.as_uri(), "xy\n", version=7)
    lints = able.handlers[ASK] = Lints(
        {
            "uri": path.as_uri(),
            "version": 7,
            "fresh": True,
            "diagnostics": [
                problem("unused", severity=2, source="ruff", code="F401", line=4),
                problem("is not\ndefined", severity=1, source="pyright"),
            ],
        }
    )
    text = await ask(office, able, paths=["a.py"], wait_s=1)
    assert lints.asked == [
        {"uris": [path.as_uri()], "atLeast": {path.as_uri(): 7}, "timeoutMs": 1000}
    ]
    assert text.splitlines() == [
        "a.py: 2 problems (fresh)",
        "  1:5 error [pyright] is not defined",
        "  5:5 warning [ruff F401] unused",
    ]


@pytest.mark.parametrize(
    ("item", "head"),
    [
        ({"fresh": False}, "a.py: no problems (STALE"),
        ({"fresh": True, "version": 6}, "a.py: no problems (STALE"),
        ({"fresh": True}, "a.py: no problems (fresh)"),
        ({}, "a.py: no problems (STALE"),
    ],
    ids=repr,
)
async def test_what_is_of_an_older_text_is_said_to_be_stale(
    office: Office, item: Json, head: str
) -> None:
    path = office.ground.file("a.py", "x\n")
    able = await office.seat(ABLE)
    able.open(path.as_uri(), "x\n", version=7)
    able.handlers[ASK] = Lints({"uri": path.as_uri(), "diagnostics": [], **item})
    assert (await ask(office, able, paths=["a.py"])).startswith(head)


async def test_of_two_editors_the_owner_of_the_text_is_asked(office: Office) -> None:
    path = office.ground.file("a.py", "x\n")
    first, second = await office.seat(ABLE), await office.seat(ABLE)
    quiet = first.handlers[ASK] = Lints()
    lints = second.handlers[ASK] = Lints(
        {"uri": path.as_uri(), "fresh": True, "diagnostics": [problem("bad")]}
    )
    first.open(path.as_uri(), "x\n")
    second.open(path.as_uri(), "x\n")
    second.change(path.as_uri(), "xx\n")
    assert "1:5 error bad" in await ask(office, first, paths=["a.py"])
    assert (len(quiet.asked), len(lints.asked)) == (0, 1)


async def test_all_of_the_workspace_and_nothing_outside_of_it(office: Office) -> None:
    able = await office.seat(ABLE)
    path = office.ground.file("a.py", "x\n")
    able.handlers[ASK] = Lints(
        {"uri": path.as_uri(), "fresh": True, "diagnostics": [problem("bad")]},
        {"uri": "file:///etc/passwd", "fresh": True, "diagnostics": [problem("secret")]},
        {"uri": "untitled:1", "fresh": True, "diagnostics": [problem("odd")]},
        {"uri": 7},
        None,
    )
    text = await ask(office, able)
    assert "bad" in text
    assert "secret" not in text
    assert "odd" not in text


@pytest.mark.parametrize(
    "answer", [None, [], {"items": "x"}, {"items": [{"uri": []}]}, 7], ids=repr
)
async def test_what_is_no_answer_says_nothing(office: Office, answer: Any) -> None:
    office.ground.file("a.py", "x\n")
    able = await office.seat(ABLE)
    able.handlers[ASK] = lambda _, reply: reply(answer)
    assert await ask(office, able, paths=["a.py"]) == "a.py: the editor says nothing of it"


async def test_an_editor_that_fails_or_never_answers_is_named(office: Office) -> None:
    office.ground.file("a.py", "x\n")
    able = await office.seat(ABLE)
    able.handlers[ASK] = lambda _, reply: reply.error(-32603, "no linter")
    assert "able: no linter" in await ask(office, able, paths=["a.py"])
    able.handlers[ASK] = LeavesOpen()
    assert "run the checker" in await ask(office, able, paths=["a.py"], wait_s=0.1)
