"""A tool that reaches a host is asked about by that host, and an answer counts for it alone."""

from collections.abc import Sequence

import pytest

from agent_core.session.permissions.broker import PermissionState
from agent_core.tools.builtin import fetch_tool, web_search_tool
from agent_core.workspace.permissions.call_permission import PolicyMode
from tests.support.harness.clock import HeldClock
from tests.support.session.asking import asked
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import bench


async def no_names(_host: str, _port: int) -> Sequence[str]:
    raise OSError(-2, "Name or service not known")


def model(*urls: str) -> ScriptedModel:
    calls = [call("fetch", {"url": url}, id=f"c{at}") for at, url in enumerate(urls)]
    return ScriptedModel([*calls, say("Done.")])


@pytest.mark.parametrize("mode", ["plan", "ask", "auto"])
async def test_a_host_is_asked_about_once_and_others_again(mode: PolicyMode) -> None:
    urls = ("https://a.example/1", "https://A.example/2", "https://b.example/3")
    async with bench(
        model(*urls), tools=(fetch_tool(no_names),), mode=mode, clock=HeldClock()
    ) as it:
        await it.session.prompt("Read them.")
        first = await asked(it)
        assert first.title == "Fetch: a.example"
        assert first.subject.type == "fetch"
        assert first.subject.input == {"url": "https://a.example/1"}
        assert "it sends its arguments to a.example" in first.description
        option = next(one for one in first.options if one.kind == "allowSession")
        assert option.label == "Allow fetch a.example for this session"
        _ = it.session.permissions.answer(first.request, option.id)
        second = await asked(it, 2)
        assert second.subject.input == {"url": "https://b.example/3"}
        _ = it.session.permissions.answer(second.request, "rejectOnce")
        _ = await it.idle()
        assert [text.partition(":")[0] for text in it.results()][:2] == [
            "The host a.example has no address (name or service not known)"
        ] * 2
        assert it.results()[2].startswith("the user refused this.")


async def test_nobody_to_ask_is_a_refusal_that_names_the_rule() -> None:
    standing = PermissionState(mode="auto", fallback="rules")
    async with bench(
        model("https://a.example/"), tools=(fetch_tool(no_names),), standing=standing
    ) as it:
        await it.session.prompt("Read it.")
        _ = await it.idle()
        (refusal,) = it.results()
        assert "a rule for 'a.example' in policy.json" in refusal


async def test_a_search_asks_for_the_host_of_the_service_and_a_missing_one_is_said() -> None:
    tool = web_search_tool(lambda: True, resolve=no_names)
    script = ScriptedModel([call("web_search", {"query": "x"}), say("Done.")])
    async with bench(script, tools=(tool,), mode="ask", clock=HeldClock()) as it:
        await it.session.prompt("Search.")
        _ = await it.idle()
        assert it.results() == [
            "No search service is configured: the user must set web.search in settings.json."
        ]


async def test_models_see_the_search_once_it_is_configured() -> None:
    configured: list[bool] = []
    tool = web_search_tool(lambda: bool(configured))
    async with bench(ScriptedModel([say("1"), say("2")]), tools=(tool, fetch_tool())) as it:
        await it.session.prompt("a")
        _ = await it.idle()
        configured.append(True)
        await it.session.prompt("b")
        _ = await it.idle()
        seen = [[tool.name for tool in request.tools] for request in it.model.requests]
        assert seen == [["fetch"], ["web_search", "fetch"]]
