"""A browser's conversation over HTTP: prompt, events, permission, end, and what the role allows."""

import httpx
import pytest

from tests.support.clients.browsers import Heard, ask, events_of, following, opened, served
from tests.support.clients.server import Ground, calls, prompt, says

pytestmark = [pytest.mark.timeout(60)]


async def test_a_prompt_is_answered_and_a_permission_is_given(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.provider.script([calls(("bash", {"command": "touch x"})), says("done")])
    heard: list[Heard] = []
    async with served(ground) as site, site.page() as page:
        login = await page.post("/v1/login", json={"token": site.one_off})
        assert login.status_code == 204
        session = (await opened(page))["session"]
        async with following(page, [session]) as stream:
            assert stream.answer.headers["content-type"].startswith("text/event-stream")
            accepted = await ask(page, "agent/prompt", session=session, **prompt("go"))
            assert accepted["result"]["accepted"] == "started"
            while (one := await stream.next()) is not None:
                heard.append(one)
                for event in one.frame.get("events", []):
                    if event["type"] == "permission.requested":
                        answer = await ask(
                            page,
                            "agent/permission/respond",
                            request=event["request"]["request"],
                            option="allowOnce",
                        )
                        assert answer["result"]["status"] == "recorded"
                if any(event["type"] == "run.ended" for event in events_of([one])):
                    break
    assert heard[0].event == "snapshot"
    assert heard[0].id == f"{heard[0].frame['epoch']}.{heard[0].frame['seq']}"
    kinds = [event["type"] for event in events_of(heard)]
    assert kinds.index("permission.requested") < kinds.index("permission.resolved")
    (resolved,) = [one for one in events_of(heard) if one["type"] == "permission.resolved"]
    assert resolved["by"] == "Tiller web"
    assert (ground.root / "x").exists()


async def test_a_session_of_another_folder_goes_on_there(ground: Ground) -> None:
    ground.configure(permission={"mode": "yolo"}, sandbox="off")
    other = ground.root.parent / "other"
    other.mkdir()
    ground.provider.script([says("here"), calls(("bash", {"command": "touch x"})), says("done")])
    async with served(ground) as site, site.script() as script:
        made = await ask(script, "agent/session/open", session="new", folders=[other.as_uri()])
        session = made["result"]["session"]
        await run_to_its_end(script, session, "go")
        # As after a restart of the daemon: nobody has it open.
        await site.server.link.request("agent/session/close", {"session": session})
        reopened = await ask(script, "agent/session/open", session=session)
        assert [one["uri"] for one in reopened["result"]["roots"]] == [other.as_uri()]
        await run_to_its_end(script, session, "go on")
    assert (other / "x").exists()
    assert not (ground.root / "x").exists()


async def run_to_its_end(script: httpx.AsyncClient, session: str, text: str) -> None:
    """Send a prompt and wait for the end of its run."""
    async with following(script, [session]) as stream:
        await ask(script, "agent/prompt", session=session, **prompt(text))
        while one := await stream.next():
            if any(event["type"] == "run.ended" for event in events_of([one])):
                return
