"""The history has every message once, in order, and finds what was sent with a key."""

from agent_core.channels.messaging.port import ApprovalOption, ApprovalPrompt, Target
from tests.support.lark.faults import CallFault
from tests.support.lark.stage import GROUP, open_stage
from tests.support.lark.world import BOT
from tiller_server.channels.lark.history import PAGE_ITEMS

PROMPT = ApprovalPrompt(
    request="q1", title="Run a command", body="`make`", digest="0" * 16, code="7f3a",
    options=(ApprovalOption(id="once", label="Allow once"),),
)  # fmt: skip


async def test_pages_of_the_history_are_joined_oldest_first_without_own_messages() -> None:
    async with open_stage() as stage:
        world = stage.platform.world
        world.say("oc_group", "too old")
        stage.clock.advance(10)
        since_ms = stage.clock.now_ms()
        texts = [f"message {number}" for number in range(PAGE_ITEMS * 2 + 5)]
        for text in texts:
            stage.clock.advance(1)
            mentions = [{"key": "@_user_1", "id": BOT, "id_type": "open_id", "name": "T"}]
            world.say("oc_group", f"@_user_1 {text}", mentions=mentions)
        world.say("oc_group", "recalled", deleted=True)
        world.say("oc_group", "", kind="system", content='{"template":"x"}')
        await stage.channel.post(GROUP, "mine", key="k1")
        read = await stage.channel.history(GROUP, since_ms=since_ms)
        assert [message.text for message in read] == texts
        assert {(message.mentioned, message.chat_kind) for message in read} == {(True, "group")}


async def test_a_thread_has_a_history_of_its_own() -> None:
    async with open_stage() as stage:
        world = stage.platform.world
        for text in ("old", "new", "newer"):
            stage.clock.advance(60)
            world.say("oc_direct", text, thread="omt_1")
            world.say("oc_direct", "elsewhere")
        thread = Target(chat="oc_direct", thread="omt_1")
        read = await stage.channel.history(thread, since_ms=stage.clock.now_ms() - 90_000)
        assert [(message.text, message.chat_kind) for message in read] == [
            ("new", "direct"), ("newer", "direct"),
        ]  # fmt: skip
        assert await stage.channel.history(thread, since_ms=stage.clock.now_ms() + 1) == ()


async def test_texts_approvals_and_answers_are_found_by_their_key() -> None:
    async with open_stage() as stage:
        since_ms = stage.clock.now_ms()
        text = await stage.channel.post(GROUP, "a", key="text")
        ask = await stage.channel.ask(GROUP, PROMPT, key="ask")
        answer = await stage.channel.open_answer(GROUP, key="answer")
        await answer.finish("all", "completed")
        stage.platform.world.say("oc_group", "text ask answer")
        found = [
            await stage.channel.find_sent(GROUP, key=key, since_ms=since_ms)
            for key in ("text", "ask", "answer", "other")
        ]
        assert found == [text.message, ask.message, answer.sent.message, None]


async def test_a_name_is_looked_up_once_a_day_and_its_absence_delays_nothing() -> None:
    path = "/open-apis/contact/v3/users/ou_ada"
    async with open_stage() as stage:
        stage.platform.faults.append(CallFault(path=path, code=99991672, status=400))
        names: list[str] = []
        for wait_s in (0, 0, 3_601, 3_600, 24 * 3_600):
            stage.clock.advance(wait_s)
            stage.platform.world.say("oc_group", "hi")
            (*_, message) = await stage.channel.history(GROUP, since_ms=stage.clock.now_ms())
            names.append(message.sender.name)
        assert names == ["", "", "Ada", "Ada", "Ada"]
        assert stage.platform.calls.count(("GET", path)) == 3
