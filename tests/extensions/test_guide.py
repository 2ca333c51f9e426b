"""The extensions of docs/extensions.md do what the page says, and its reference has every member."""

from agent_core.events import ToolEnded, UiNotify, UiWidget
from agent_core.extensions import ExtensionApi, ToolArguments
from tests.extensions.guide import PAGE, blocks, page
from tests.support.hooks.extensions import Home, extended
from tests.support.session.scripted_model import ScriptedModel, call, say


class WriteArguments(ToolArguments):
    path: str
    content: str


COMMAND, TOOL, CHECK, VIEW = range(4)


def test_the_reference_has_every_member() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.extensions.guide"


async def test_the_command_shows_the_size(home: Home) -> None:
    file = home.write("notes.py", blocks()[COMMAND])
    async with extended(home, named=[file]) as it:

        def shown() -> list[object]:
            return [one.view["text"] for one in it.bench.seen() if isinstance(one, UiNotify)]

        await it.command("/size", lambda: bool(shown()))
        assert shown() == ["0 messages, 0 tokens."]


async def test_the_tool_reads_a_ticket(home: Home) -> None:
    file = home.write("tickets.py", blocks()[TOOL])
    model = ScriptedModel([call("ticket", {"number": 7}), say("It rounds.")])
    async with extended(home, model, named=[file]) as it:
        _ = await it.say("read ticket 7")
        (ended,) = [one for one in it.bench.seen() if isinstance(one, ToolEnded)]
        assert "The total is rounded down." in str(ended)


async def test_the_check_keeps_the_folder_and_lets_other_files_through(home: Home) -> None:
    file = home.write("guard.py", blocks()[CHECK])
    write = call("write", {"path": "migrations/1.sql", "content": "drop table users"})
    written: list[str] = []

    def writer(api: ExtensionApi) -> None:
        @api.tool(name="write")
        async def write_file(arguments: WriteArguments, ctx: object) -> str:
            """Write a file."""
            written.append(arguments.path)
            return "Written."

    other = call("write", {"path": "a.txt", "content": "a"})
    model = ScriptedModel([write, other, say("All right.")])
    async with extended(home, model, named=[file], given=[writer]) as it:
        _ = await it.say("change it")
        assert "write a new one" in str(it.bench.messages)
    assert written == ["a.txt"]


async def test_the_view_counts_the_calls(home: Home) -> None:
    file = home.write("counts.py", blocks()[VIEW])
    _ = (home.root / "a.txt").write_text("a\n", encoding="utf-8")
    model = ScriptedModel([call("read", {"path": "a.txt"}), say("Read.")])
    async with extended(home, model, named=[file]) as it:
        _ = await it.say("read it")
        views = [str(one) for one in it.bench.seen() if isinstance(one, UiWidget)]
        assert "read: 1" in views[-1]
