"""The Neovim page, followed word for word on a fresh profile: it ends with an edit in a buffer."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.clients.shims import end_daemon
from tests.support.programs.fresh_user import NEOVIM, NEOVIM_BEFORE, NEOVIM_LUA, neovim_user
from tests.support.programs.neovim_lists import answer_with
from tests.support.programs.pages import EDITORS, block
from tests.support.programs.real_editors import Name, Neovim

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

DISK = "one\ntwo\nthree\n"
EDITED = "one\n2\nthree\n"
EDIT = ("edit", {"path": "a.py", "edits": [{"oldText": "two", "newText": "2"}]})
CHAT = """
    local number = vim.fn.bufnr("tiller://chat")
    local chat = number > 0 and table.concat(vim.api.nvim_buf_get_lines(number, 0, -1, false), "\\n") or ""
"""


def chat_has(words: str) -> str:
    """Give Lua that looks into the chat buffer."""
    return f"{CHAT} return chat:find('{words}', 1, true) ~= nil"


def text_of(path: Path) -> str:
    return path.read_text("utf-8")


@pytest.fixture
def path(ground: Ground) -> Iterator[Path]:
    """Make a project that is new to Tiller, with a file; the daemon ends with the test."""
    ground.configure(defaultProjectTrust="ask")
    (ground.root / ".git").mkdir()
    yield ground.file("a.py", DISK)
    end_daemon(ground.env)


def with_lua(ground: Ground, home: Path, path: Path) -> AbstractAsyncContextManager[Neovim]:
    """Start Neovim with the Lua file of the page."""
    return neovim_user(ground, home, path, name="neovim 0.11.4", section=NEOVIM_LUA)


async def first_words(editor: Neovim) -> None:
    """Type the first prompt of the page, and answer that the folder is trusted."""
    await editor.keys(f"{block(NEOVIM, 'First prompt', language='vim').text.strip()}<CR>")
    await answer_with(editor, "1")


@pytest.mark.parametrize(
    ("name", "section"),
    [("neovim 0.11.4", "Settings"), ("neovim 0.7.2", NEOVIM_BEFORE)],
    ids=["0.11.4", "0.7.2"],
)
async def test_the_settings_and_the_first_words_lead_to_an_edit_in_the_buffer(
    ground: Ground, tmp_path: Path, path: Path, name: Name, section: str
) -> None:
    ground.provider.script([calls(EDIT), says("done")])
    async with neovim_user(ground, tmp_path / "home", path, name=name, section=section) as editor:
        await first_words(editor)
        await editor.until("return vim.api.nvim_buf_get_lines(0, 1, 2, false)[1] == '2'")
        assert await editor.is_modified()
        assert text_of(path) == DISK
        await editor.undo()
        assert await editor.text() == DISK
        said = ground.provider.requests[0]["body"]["messages"][-1]
        assert "The tests fail. Please repair them." in str(said)


async def test_the_lua_file_streams_into_its_chat_and_saves_when_it_is_asked(
    ground: Ground, tmp_path: Path, path: Path
) -> None:
    run = ("bash", {"command": "cat a.py"})
    ground.provider.script([calls(EDIT, text="I look."), calls(run), says("All is well.")])
    async with with_lua(ground, tmp_path / "home", path) as editor:
        await editor.keys("itwo words <Esc>u")
        await editor.keys(":silent write<CR>")
        await editor.keys(":TillerAsk The tests fail.<CR>")
        await answer_with(editor, "1")
        await editor.until(chat_has("completed"))
        chat = await editor.ask(f"{CHAT} return chat")
        assert chat.index("The tests fail.") < chat.index("I look.") < chat.index("All is well.")
        # Saved for the command, which therefore read the new text.
        assert text_of(path) == EDITED
        assert EDITED in str(ground.provider.requests[-1]["body"]["messages"][-1]["content"])
        await editor.keys(":Tiller status<CR>")
        await editor.until("return vim.fn.execute('messages'):find('model lab/m', 1, true) ~= nil")
        await editor.keys(":TillerChat<CR>")
        assert await editor.ask("return vim.fn.bufname()") == "tiller://chat"


async def test_the_lua_file_stops_a_run(ground: Ground, tmp_path: Path, path: Path) -> None:
    ground.provider.script([{**says("never said"), "delay_s": 60}])
    async with with_lua(ground, tmp_path / "home", path) as editor:
        await editor.keys(":TillerAsk go<CR>")
        await answer_with(editor, "1")
        await editor.until(chat_has("go"))
        await editor.keys(":TillerStop<CR>")
        await editor.until(chat_has("cancelled"))


async def test_after_a_restart_in_the_middle_of_a_run_the_chat_has_all_of_it_once(
    ground: Ground, tmp_path: Path, path: Path
) -> None:
    words = " ".join(f"w{number}" for number in range(40))
    slow = {**says(words), "deltas": 40, "delta_delay_s": 0.2}
    ground.provider.script([calls(EDIT, text="I look."), slow])
    async with with_lua(ground, tmp_path / "home", path) as editor:
        await editor.keys(":TillerAsk The tests fail.<CR>")
        await answer_with(editor, "1")
        await editor.until(chat_has("w3"))
        assert "w39" not in await editor.ask(f"{CHAT} return chat")
    # Its user has left without a word; unsaved text was lost with it, as theirs is in any editor.
    async with with_lua(ground, tmp_path / "home", path) as editor:
        await editor.until(chat_has("completed"))
        chat = await editor.ask(f"{CHAT} return chat")
        for once in ("The tests fail.", "I look.", words, "completed"):
            assert chat.count(once) == 1


def test_the_lua_file_has_at_most_80_lines() -> None:
    lines = (EDITORS / "tiller.lua").read_text("utf-8").splitlines()
    assert len(lines) <= 80
    assert max(map(len, lines)) <= 124
