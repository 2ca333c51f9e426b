"""The open steps of a list are added again when a summary takes the place of the conversation that holds it."""

from agent_core.messages import CustomMessage
from agent_core.tools.builtin import todo_tool
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import Bench, bench, words

LONG = "word " * 30_000
SUMMARY = say("They work on the build.")
HALF = [
    {"text": "Read", "status": "done"},
    {"text": "Mend", "status": "active", "why": "CI is red"},
    {"text": "Test"},
]
REMINDER = (
    "State of the todo list before the summary above. Tiller kept it; it is not a message of the user.\n"
    "- [active] Mend (why: CI is red)\n"
    "- [pending] Test"
)


def steps(items: list[dict[str, str]]):
    return call("todo", {"items": items})


async def talk(it: Bench, *prompts: str) -> None:
    for prompt in prompts:
        receipt = await it.session.prompt(prompt)
        assert receipt.run is not None
        _ = await it.session.wait(receipt.run)


async def compacted(it: Bench) -> list[str]:
    """Compact all but the newest words; return the reminders in the context."""
    _ = await it.session.compact(keep_recent_tokens=100)
    await it.session.wait_idle()
    return [words(one) for one in it.messages if isinstance(one, CustomMessage)]


async def test_open_steps_outlive_two_compactions_and_people_are_not_shown_them() -> None:
    model = ScriptedModel(
        [steps(HALF), say(LONG), say("ok"), SUMMARY, say(LONG), say("ok"), SUMMARY, SUMMARY]
    )
    async with bench(model, tools=(todo_tool(),)) as it:
        await talk(it, "Mend the build.", "Go on.")
        assert await compacted(it) == [REMINDER]
        await talk(it, "Go on.", "And on.")
        assert await compacted(it) == [REMINDER]
        shown = [event for event in it.seen() if getattr(event, "custom_type", None)]
        assert shown == []


async def test_a_list_that_is_done_is_not_brought_back() -> None:
    done = [{"text": "Read", "status": "done"}, {"text": "Test", "status": "cancelled"}]
    model = ScriptedModel([steps(HALF), steps(done), say(LONG), say("ok"), SUMMARY])
    async with bench(model, tools=(todo_tool(),)) as it:
        await talk(it, "Mend the build.", "Go on.")
        assert await compacted(it) == []


async def test_a_list_that_stays_in_the_conversation_is_not_repeated() -> None:
    model = ScriptedModel([say(LONG), steps(HALF), say("ok"), SUMMARY])
    async with bench(model, tools=(todo_tool(),)) as it:
        await talk(it, "Think.", "Mend the build.")
        assert await compacted(it) == []
