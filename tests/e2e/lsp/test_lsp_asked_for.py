"""What a client asks for when it opens, forks or prompts is applied or refused."""

from typing import Any

import pytest

from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.clients.windows import opened, serving
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import PANEL

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]


async def test_a_session_opened_in_plan_mode_writes_nothing(ground: Ground) -> None:
    ground.provider.script([calls(("write", {"path": "x.txt", "content": "x"})), says("done")])
    async with serving(ground) as windows, windows.window(PANEL) as window:
        snapshot = await opened(window, "new", config={"mode": "plan"})
        result = await window.request("agent/prompt", prompt("write x.txt", wait=True))
    assert (snapshot["config"]["mode"], result["message"]) == ("plan", "done")
    assert not (ground.root / "x.txt").exists()


async def test_every_choice_of_an_opening_is_in_force_in_its_snapshot(ground: Ground) -> None:
    asked = {
        "mode": "ask",
        "thinking": "low",
        "autoCompact": False,
        "steering": "all",
        "followUp": "all",
        "budgets": {"usd": 1.5},
        "tools": ["read"],
    }
    async with serving(ground) as windows, windows.window(PANEL) as window:
        model = (await opened(window))["config"]["model"]
        snapshot = await opened(window, "new", config={**asked, "model": model}, title=" A  title ")
    config = snapshot["config"]
    assert {key: config[key] for key in asked} == asked
    assert (config["model"], snapshot["title"]) == (model, "A title")


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"mode": "yolo"}, "allows more than your own settings do"),
        ({"mode": "_vendor"}, "mode is '_vendor', which this server does not know"),
        ({"thinking": "_deep"}, "thinking is '_deep', which this server does not know"),
        ({"steering": "_never"}, "steering is '_never', which this server does not know"),
        ({"model": "no/such"}, "no/such"),
        ({"tools": "nothing"}, "nothing"),
        ({"budgets": {"usd": 9}}, "usd"),
        (
            {"mod": "plan"},
            'config.mod must be left out, the method has no such field; did you mean "mode"?',
        ),
    ],
)
async def test_a_choice_that_is_refused_leaves_the_window_its_session(
    ground: Ground, config: dict[str, Any], why: str
) -> None:
    ground.configure(permission={"mode": "ask"}, budgets={"usd": 2})
    async with serving(ground) as windows, windows.window(PANEL) as window:
        session = (await opened(window))["session"]
        with pytest.raises(ClientError) as refused:
            await opened(window, "new", config=config, title="never seen")
        assert why in refused.value.message
        assert (await opened(window))["session"] == session
        assert list(await windows.sessions()) == [session]


async def test_an_opening_names_one_folder_and_that_of_its_session(ground: Ground) -> None:
    ground.file("sub/a.txt", "a")
    sub = (ground.root / "sub").as_uri()
    async with serving(ground) as windows, windows.window(PANEL) as window:
        session = (await opened(window))["session"]
        with pytest.raises(ClientError, match="folders must name one folder"):
            await opened(window, "new", folders=[ground.root.as_uri(), sub])
        with pytest.raises(ClientError, match=f"works in {ground.root.as_uri()}, not in {sub}"):
            await opened(window, session, folders=[sub])
        assert (await opened(window, "new", folders=[sub]))["roots"][0]["uri"] == sub


async def test_a_fork_has_the_title_that_was_asked_for(ground: Ground) -> None:
    ground.provider.script([says("one"), says("two")])
    async with serving(ground) as windows, windows.window(PANEL) as window:
        await opened(window, "new", title="the first")
        await window.request("agent/prompt", prompt("hello", wait=True))
        clone = await window.request("agent/session/fork", {"title": "the  second"})
        kept = await window.request("agent/session/fork", {})
        nodes = (await window.request("agent/session/tree", {}))["nodes"]
        first = next(one["entry"] for one in nodes if one["preview"].startswith("hello"))
        fresh = await window.request("agent/session/fork", {"atEntry": first, "title": "third"})
        listed = await window.request("agent/session/list", {})
        assert (await opened(window, clone["session"]))["title"] == "the second"
    assert [one.get("title") for one in (clone, kept, fresh)] == [
        "the second",
        "the first",
        "third",
    ]
    titles = {one["session"]: one.get("title") for one in listed["sessions"]}
    assert titles[clone["session"]] == "the second"


@pytest.mark.parametrize(
    ("method", "params", "why"),
    [
        (
            "agent/prompt",
            {"content": "x", "overrides": {"mode": "plan"}},
            "overrides must be left out, the method has no such field",
        ),
        (
            "agent/session/delete",
            {"sesion": "another"},
            'sesion must be left out, the method has no such field; did you mean "session"?',
        ),
        (
            "agent/prompt",
            {"content": [{"type": "text", "text": "x", "txt": 1}]},
            'content[0].txt must be left out, the method has no such field; did you mean "text"?',
        ),
    ],
)
async def test_a_field_that_nobody_reads_is_refused_by_its_name(
    ground: Ground, method: str, params: dict[str, Any], why: str
) -> None:
    async with serving(ground) as windows, windows.window(PANEL) as window:
        session = (await opened(window))["session"]
        with pytest.raises(ClientError) as refused:
            await window.request(method, params)
        assert (refused.value.code, refused.value.message) == (-32602, f"{method}: {why}")
        assert list(await windows.sessions()) == [session]


async def test_fields_of_vendors_are_passed_over(ground: Ground) -> None:
    ground.provider.script([says("hello")])
    async with serving(ground) as windows, windows.window(PANEL) as window:
        result = await window.request("agent/prompt", prompt("hi", wait=True, _meta={"a": 1}))
    assert result["message"] == "hello"


@pytest.mark.parametrize(
    ("agent", "problem", "opens"),
    [
        (
            {"permision": {"mode": "plan"}},
            'permision is no option; did you mean "permission"?',
            True,
        ),
        (
            {"session": {"opne": "new"}},
            'session.opne is no option; did you mean "session.open"?',
            True,
        ),
        (
            {"permission": {"mod": "plan"}},
            'permission.mod is no option; did you mean "permission.mode"?',
            False,
        ),
        ({"budgets": {"dollars": 1}}, "budgets.dollars is no option", False),
        ({"permission": {"mode": 3}}, "permission.mode must be one of", False),
        ({"quirks": {}, "_mine": 1}, None, True),
    ],
)
async def test_an_unknown_option_of_a_client_is_shown_and_of_permission_refused(
    ground: Ground, agent: dict[str, Any], problem: str | None, opens: bool
) -> None:
    async with serving(ground) as windows, windows.window(PANEL, **agent) as window:
        if opens:
            assert (await opened(window, "new"))["state"] == "idle"
        else:
            with pytest.raises(ClientError, match="no session is opened: initializationOptions"):
                await opened(window, "new")
            assert await windows.sessions() == {}
        if problem is not None:
            shown = (await window.wait_method("window/showMessage"))["params"]
            assert shown["message"].startswith(f"Tiller: initializationOptions.agent.{problem}")


async def test_an_unknown_key_of_permission_opens_no_session_and_costs_nothing(
    ground: Ground,
) -> None:
    ground.configure(permission={"mod": "plan"})
    async with serving(ground) as windows, windows.window(PANEL) as window:
        with pytest.raises(ClientError, match='did you mean "permission'):
            await window.request("agent/prompt", prompt("go", wait=True))
    assert (ground.provider.requests, ground.sessions()) == ([], [])
