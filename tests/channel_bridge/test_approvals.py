"""Permission requests, questions and plans in a chat: who may answer, which answer counts, and how it is shown."""

import asyncio
from typing import Any

import pytest

from agent_core.channels.messaging.port import Target
from tests.support.channels.bridges import Chat, answered, bridged
from tests.support.channels.memory_platform import Fault, Shown
from tests.support.clients.server import Ground, calls, says
from tiller_server.channels.bridge.config import ChatWorkspace

pytestmark = [pytest.mark.timeout(60)]
TOUCH = calls(("bash", {"command": "touch x"}))


def ask(ground: Ground, *turns: Any, timeout_s: float = 20, **settings: Any) -> None:
    """Configure a session that asks before each command, and a script."""
    ground.configure(permission={"mode": "ask", "timeoutS": timeout_s}, sandbox="off", **settings)
    ground.provider.script([*turns])


async def approval(chat: Chat, number: int = 1) -> Shown:
    """Return an approval when it is shown and its message is recorded."""
    await chat.until(lambda: len(chat.platform.approvals()) >= number)
    shown = chat.platform.approvals()[number - 1]
    await chat.until_row("approvals", message=shown.id)
    return shown


async def test_a_permission_is_asked_for_and_an_allowance_runs_the_command(ground: Ground) -> None:
    ask(ground, TOUCH, says("done"))
    async with bridged(ground) as chat:
        message = chat.platform.write("go")
        shown = await approval(chat)
        assert shown.prompt is not None
        assert "touch x" in shown.prompt.body
        assert [one.id for one in shown.prompt.options] == ["once", "session", "deny"]
        assert not (ground.root / "x").exists()
        reply = await chat.platform.click(shown, "once")
        assert (reply.kind, reply.text) == ("success", "Allowed once")
        assert reply.settlement is not None
        assert (reply.settlement.by, reply.settlement.allowed) == ("Boss", True)
        await answered(chat, message.key)
        assert (ground.root / "x").exists()
        await chat.until(lambda: [one for one in chat.platform.calls if one.method == "settle"])


async def test_a_denial_leaves_the_command_out(ground: Ground) -> None:
    ask(ground, TOUCH, says("I was not allowed to."))
    async with bridged(ground) as chat:
        message = chat.platform.write("go")
        reply = await chat.platform.click(await approval(chat), "deny")
        assert (reply.kind, reply.text) == ("success", "Denied")
        assert reply.settlement is not None
        assert not reply.settlement.allowed
        await answered(chat, message.key)
        assert not (ground.root / "x").exists()


@pytest.mark.parametrize(
    ("option", "changes", "reason"),
    [
        ("once", {"sender": "ann"}, "You may not decide this"),
        ("once", {"digest": "0" * 16}, "belongs to no open request"),
        ("once", {"message": "m0"}, "belongs to no open request"),
        ("once", {"target": Target(chat="dm-other")}, "belongs to no open request"),
        ("once", {"request": "p-9"}, "belongs to no open request"),
        ("always", {}, "There is no such answer"),
    ],
    ids=[
        "wrong person",
        "other text",
        "forwarded",
        "other chat",
        "unknown request",
        "unknown button",
    ],
)
async def test_a_click_that_does_not_fit_allows_nothing(
    ground: Ground, option: str, changes: dict[str, Any], reason: str
) -> None:
    ask(ground, TOUCH, says("done"))
    async with bridged(ground) as chat:
        message = chat.platform.write("go")
        shown = await approval(chat)
        reply = await chat.platform.click(shown, option, **changes)
        assert (reply.kind, reply.prompt) == ("error", None)
        assert reason in reply.text
        assert not (ground.root / "x").exists()
        await chat.platform.click(shown, "deny")
        await answered(chat, message.key)


async def test_two_clicks_at_once_are_one_answer(ground: Ground) -> None:
    ask(ground, TOUCH, says("done"))
    async with bridged(ground, approvers=frozenset({"boss", "chief"})) as chat:
        message = chat.platform.write("go")
        shown = await approval(chat)
        async with asyncio.TaskGroup() as tasks:
            clicks = [
                tasks.create_task(chat.platform.click(shown, option, sender=sender))
                for option, sender in (("once", "boss"), ("deny", "chief"))
            ]
        first, second = (click.result() for click in clicks)
        assert (first.kind, first.text) == ("success", "Allowed once")
        assert (second.kind, second.text) == ("info", "Already answered by Boss: Allowed once")
        assert second.settlement == first.settlement
        await answered(chat, message.key)
        assert (ground.root / "x").exists()


async def test_an_answer_by_text_counts_as_a_click(ground: Ground) -> None:
    ask(ground, TOUCH, says("done"))
    async with bridged(ground) as chat:
        message = chat.platform.write("go")
        shown = await approval(chat)
        assert shown.prompt is not None
        code = shown.prompt.code
        chat.platform.write(f"/approve {code}", sender="ann")
        await chat.until(lambda: "You may not decide this" in "".join(chat.platform.texts()))
        chat.platform.write("/approve ffff once", sender="boss")
        await chat.until(
            lambda: "There is no request with the code" in "".join(chat.platform.texts())
        )
        chat.platform.write(f"/approve {code} once", sender="boss")
        await answered(chat, message.key)
        assert "Allowed once" in chat.platform.texts()
        assert (ground.root / "x").exists()


async def test_a_request_without_an_answer_is_redrawn_as_expired(ground: Ground) -> None:
    ask(ground, TOUCH, says("nothing came"), timeout_s=1)
    async with bridged(ground) as chat:
        message = chat.platform.write("go")
        shown = await approval(chat)
        await answered(chat, message.key)
        await chat.until_settled()
        assert shown.settlement is not None
        assert (shown.settlement.label, shown.settlement.allowed) == ("Expired: denied", False)
        late = await chat.platform.click(shown, "once")
        assert (late.kind, late.text) == ("info", "Already answered: Expired: denied")
        assert not (ground.root / "x").exists()


async def test_an_answer_of_another_front_end_is_redrawn_with_its_name(ground: Ground) -> None:
    ask(ground, TOUCH, says("done"))
    async with bridged(ground) as chat:
        message = chat.platform.write("go")
        shown = await approval(chat)
        assert shown.prompt is not None
        async with chat.daemon.connect({}) as other:
            await other.introduce(
                {"name": "Terminal", "version": "1", "role": "panel"}, (ground.root,)
            )
            (bound,) = await chat.rows("bindings")
            await other.request("agent/session/open", {"session": bound["session"]})
            params = {"request": shown.prompt.request, "option": "allowOnce"}
            recorded = await other.request("agent/permission/respond", params)
            assert recorded == {"status": "recorded", "by": "Terminal"}
            await answered(chat, message.key)
        await chat.until_settled()
        assert shown.settlement is not None
        assert (shown.settlement.label, shown.settlement.by) == ("Allowed once", "Terminal")
        assert shown.settlement.allowed


async def test_a_click_while_the_daemon_is_away_is_not_recorded(ground: Ground) -> None:
    ask(ground, TOUCH, says("done"))
    async with bridged(ground) as chat:
        chat.platform.write("go")
        shown = await approval(chat)
        await chat.daemon.stop()
        reply = await chat.platform.click(shown, "once")
        assert reply.kind in {"warning", "info"}
        assert reply.kind == "info" or reply.text.startswith("Not recorded")
        assert not (ground.root / "x").exists()


async def test_an_approval_survives_the_process(ground: Ground) -> None:
    ask(ground, TOUCH, says("done"))
    async with bridged(ground) as chat:
        message = chat.platform.write("go")
        shown = await approval(chat)
        await chat.kill()
        chat.start()
        await chat.until(lambda: chat.platform.is_connected)
        reply = await chat.platform.click(shown, "once")
        assert reply.kind == "success"
        await answered(chat, message.key)
        assert len(chat.platform.approvals()) == 1


async def test_an_approval_whose_buttons_are_refused_is_sent_as_text(ground: Ground) -> None:
    ask(ground, TOUCH, says("done"))
    async with bridged(ground) as chat:
        chat.platform.faults.append(Fault(method="ask", kind="impossible"))
        message = chat.platform.write("go")
        await chat.until(lambda: [text for text in chat.platform.texts() if "/approve" in text])
        line = next(text for text in chat.platform.texts() if "/approve" in text)
        assert "touch x" in line
        code = line.rpartition("/approve ")[2].split()[0]
        chat.platform.write(f"/approve {code}", sender="boss")
        await answered(chat, message.key)
        assert (ground.root / "x").exists()


async def test_a_question_is_answered_by_a_button(ground: Ground) -> None:
    question = {
        "question": "Which database?",
        "options": [{"label": "PostgreSQL"}, {"label": "SQLite"}],
    }
    ask(ground, calls(("ask", {"questions": [question]})), says("SQLite it is"))
    async with bridged(ground) as chat:
        message = chat.platform.write("go")
        shown = await approval(chat)
        assert shown.prompt is not None
        labels = {one.label: one.id for one in shown.prompt.options}
        reply = await chat.platform.click(shown, labels["SQLite"], sender="ann")
        assert reply.kind == "success"
        await answered(chat, message.key)
        assert "SQLite" in str(ground.provider.requests[-1]["body"]["messages"][-1]["content"])


async def test_a_plan_is_accepted_by_a_button_or_changed_by_a_message(ground: Ground) -> None:
    plan = calls(("plan", {"markdown": "1. Look\n2. Repair", "steps": ["Look", "Repair"]}))
    ask(ground, plan, says("Here is it."), plan, says("Changed."), says("Carried out."))
    workspace = ChatWorkspace(name="shop", folder=ground.root, mode="plan")
    async with bridged(ground, workspaces=(workspace,)) as chat:
        first = chat.platform.write("plan it")
        await answered(chat, first.key)
        shown = await approval(chat)
        second = chat.platform.write("also test it")
        await answered(chat, second.key)
        changed = await approval(chat, 2)
        await chat.until(lambda: shown.settlement is not None)
        assert shown.settlement is not None
        assert shown.settlement.label == "Changes requested"
        reply = await chat.platform.click(changed, "accept")
        assert (reply.kind, reply.text) == ("success", "Accepted")
        await chat.until(lambda: "Carried out." in chat.platform.texts())
