"""The setting `cacheRetention` reaches the provider, and a summary is never cached: seen on the wire."""

from typing import Any

import pytest

from agent_core import create_session
from tests.support.provider import LoopbackProvider, write_config
from tests.support.session.folders import Folder, ask

SHORT = {"type": "ephemeral"}
LONG = {"type": "ephemeral", "ttl": "1h"}
API = "anthropic-messages"
CHEAP = {"compaction": {"keepRecentTokens": 0}}


def body_of(lab: LoopbackProvider) -> dict[str, Any]:
    return lab.requests[-1]["body"]


def marks(body: dict[str, Any]) -> list[Any]:
    """Give the marks of the instructions, the last tool and the last words."""
    system = body["system"][0]
    tools = body.get("tools") or [{}]
    return [
        each.get("cache_control")
        for each in (system, tools[-1], body["messages"][-1]["content"][-1])
    ]


@pytest.mark.parametrize(
    ("settings", "mark"),
    [
        ({}, SHORT),
        ({"cacheRetention": "none"}, None),
        ({"cacheRetention": "short"}, SHORT),
        ({"cacheRetention": "long"}, LONG),
        ({"cacheRetention": "forever"}, SHORT),
    ],
    ids=["unset", "none", "short", "long", "wrong"],
)
async def test_the_setting_reaches_the_wire(
    folder: Folder, lab: LoopbackProvider, settings: dict[str, Any], mark: Any
) -> None:
    write_config(folder.dirs.config, lab, api=API, settings=settings)
    lab.script([{"text": "hello"}])
    async with create_session(workspace=folder.root, env=folder.env, trusted=True) as session:
        await ask(session)
    assert marks(body_of(lab)) == [mark] * 3


@pytest.mark.parametrize(
    ("setting", "told", "mark"),
    [("none", "long", LONG), ("long", "none", None), ("long", "short", SHORT)],
)
async def test_what_models_json_says_goes_before_the_setting(
    folder: Folder, lab: LoopbackProvider, setting: str, told: str, mark: Any
) -> None:
    model = {"compat": {"cacheRetention": told}}
    settings = {"cacheRetention": setting}
    write_config(folder.dirs.config, lab, api=API, settings=settings, model=model)
    lab.script([{"text": "hello"}])
    async with create_session(workspace=folder.root, env=folder.env, trusted=True) as session:
        await ask(session)
    assert marks(body_of(lab)) == [mark] * 3


@pytest.mark.parametrize(
    "model", [{}, {"compat": {"cacheRetention": "long"}}], ids=["set", "set and told"]
)
async def test_the_request_for_a_summary_is_not_cached(
    folder: Folder, lab: LoopbackProvider, model: dict[str, Any]
) -> None:
    settings = {"cacheRetention": "long", **CHEAP}
    write_config(folder.dirs.config, lab, api=API, settings=settings, model=model)
    # Everything is too old to keep: the history is summarised, and the beginning of the last turn.
    lab.script([{"text": "hello"}, {"text": "again"}, *[{"text": "## Goal\nA summary."}] * 2])
    async with create_session(workspace=folder.root, env=folder.env, trusted=True) as session:
        await ask(session)
        await ask(session)
        assert marks(body_of(lab)) == [LONG] * 3
        before = len(lab.requests)  # the provider serves all tests
        _ = await session.compact()
        _ = await session.wait_idle()
    assert [str(each["body"]).count("cache_control") for each in lab.requests[before:]] == [0, 0]
