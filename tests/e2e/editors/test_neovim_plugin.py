"""The Neovim plugin, installed as its page says on a fresh profile, in the real editor."""

import re
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

import anyio
import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.clients.shims import end_daemon
from tests.support.harness.shared import ROOT
from tests.support.programs.fresh_user import NEOVIM, NEOVIM_PLUGIN, neovim_user
from tests.support.programs.neovim_lists import answer_with, choose
from tests.support.programs.pages import page
from tests.support.programs.real_editors import Name, Neovim

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

PLUGIN: Final = ROOT / "editors/nvim"
VERSIONS: tuple[Name, ...] = ("neovim 0.11.4", "neovim 0.7.2")
BOTH = pytest.mark.parametrize("name", VERSIONS, ids=["0.11.4", "0.7.2"])
DISK = "one\ntwo\nthree\n"
EDITED = "one\n2\nthree\n"
EDIT = ("edit", {"path": "a.py", "edits": [{"oldText": "two", "newText": "2"}]})
CHAT = """
    local chat = ""
    for _, number in ipairs(vim.api.nvim_list_bufs()) do
      if vim.startswith(vim.api.nvim_buf_get_name(number), "tiller://chat") then
        chat = table.concat(vim.api.nvim_buf_get_lines(number, 0, -1, false), "\\n")
      end
    end
"""
SIGNS = """
    local signs = {}
    local space = vim.api.nvim_create_namespace("tiller.changes")
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })) do
      table.insert(signs, { mark[2] + 1, vim.trim(mark[4].sign_text or "") })
    end
"""


def chat_has(text: str) -> str:
    """Return Lua that looks for a text in the chat window's transcript."""
    return f"{CHAT} return chat:find('{text}', 1, true) ~= nil"


def text_of(path: Path) -> str:
    return path.read_text("utf-8")


def status_is(text: str) -> str:
    """Return Lua that looks for a text in the status line."""
    return f"return require('tiller').status():find('{text}', 1, true) ~= nil"


@pytest.fixture
def path(ground: Ground) -> Iterator[Path]:
    """Create a project with a file; the daemon ends with the test."""
    (ground.root / ".git").mkdir()
    yield ground.file("a.py", DISK)
    end_daemon(ground.env)


def user(
    ground: Ground, tmp_path: Path, path: Path, name: Name = "neovim 0.11.4"
) -> AbstractAsyncContextManager[Neovim]:
    """Start Neovim with the plugin on the file, for as long as the block."""
    return neovim_user(ground, tmp_path / "home", path, name=name, section=NEOVIM_PLUGIN)


async def signs(editor: Neovim) -> str:
    """Return the line and the text of each sign; Neovim 0.7 does not report the texts."""
    return " ".join(f"{line}{text}" for line, text in await editor.ask(f"{SIGNS} return signs"))


@BOTH
async def test_a_prompt_edits_an_unsaved_buffer_and_undo_takes_it_back(
    ground: Ground, tmp_path: Path, path: Path, name: Name
) -> None:
    ground.configure(defaultProjectTrust="ask")
    ground.provider.script([calls(EDIT, text="I look."), says("All is well.")])
    async with user(ground, tmp_path, path, name) as editor:
        await editor.keys("ggOunsaved<Esc>")
        await editor.keys(":Tiller send The tests fail.<CR>")
        await answer_with(editor, "1")
        await editor.until(chat_has("completed"))
        assert await editor.text() == f"unsaved\n{EDITED}"
        assert await editor.is_modified()
        assert text_of(path) == DISK
        chat = await editor.ask(f"{CHAT} return chat")
        order = ["## You", "The tests fail.", "## Tiller", "I look.", "a.py · ok", "All is well."]
        assert sorted(order, key=chat.index) == order
        await editor.until(f"{SIGNS} return #signs == 1")
        assert await signs(editor) in {"3~", "3"}
        await editor.undo()
        assert await editor.text() == f"unsaved\n{DISK}"


@BOTH
async def test_a_change_is_kept_or_rejected_where_its_sign_is(
    ground: Ground, tmp_path: Path, path: Path, name: Name
) -> None:
    more = {"oldText": "three\n", "newText": "three\nfour\nfive\n"}
    first = {"oldText": "one", "newText": "1"}
    ground.provider.script(
        [calls(("edit", {"path": "a.py", "edits": [first, more]})), says("done")]
    )
    async with user(ground, tmp_path, path, name) as editor:
        await editor.keys(":Tiller send go<CR>")
        await editor.until(chat_has("completed"))
        await editor.until(f"{SIGNS} return #signs == 3")
        assert await signs(editor) in {"1~ 4+ 5+", "1 4 5"}
        await editor.until(status_is("2 to review"))
        await editor.keys("gg:Tiller next<CR>")
        assert await editor.ask("return vim.api.nvim_win_get_cursor(0)[1]") == 4
        await editor.keys(":Tiller reject<CR>")
        await editor.until(f"{SIGNS} return #signs == 1")
        assert await editor.text() == "1\ntwo\nthree\n"
        await editor.keys(":Tiller! accept<CR>")
        await editor.until(f"{SIGNS} return #signs == 0")
        assert await editor.text() == "1\ntwo\nthree\n"


@BOTH
async def test_a_permission_request_is_answered_in_the_editor(
    ground: Ground, tmp_path: Path, path: Path, name: Name
) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    command = ("bash", {"command": "touch made"})
    ground.provider.script([calls(command), says("done")])
    async with user(ground, tmp_path, path, name) as editor:
        await editor.keys(":Tiller send go<CR>")
        await choose(editor, "Allow once")
        await editor.until(chat_has("completed"))
        assert (ground.root / "made").exists()
        assert "touch made" in await editor.ask(f"{CHAT} return chat")


@BOTH
async def test_the_chat_window_steers_a_run_and_stops_it(
    ground: Ground, tmp_path: Path, path: Path, name: Name
) -> None:
    slow = {**calls(("bash", {"command": "echo first"})), "delay_s": 1.0}
    ground.provider.script([slow, {**says("never"), "delay_s": 60}])
    async with user(ground, tmp_path, path, name) as editor:
        await editor.keys(":Tiller chat<CR>")
        await editor.keys("igo<C-s>")
        await editor.until(status_is("running"))
        await editor.keys("<Esc>iuse another way<Esc><CR>")
        await editor.until(chat_has("use another way"))
        assert "use another way" in str(ground.provider.requests[-1]["body"]["messages"])
        await editor.keys("<C-c>")
        await editor.until(chat_has("cancelled"))
        await editor.until(status_is("idle"))


async def test_a_file_is_saved_for_a_command_when_nothing_of_the_user_is_in_it(
    ground: Ground, tmp_path: Path, path: Path
) -> None:
    run = ("bash", {"command": "cat a.py"})
    ground.provider.script([calls(EDIT), calls(run), says("done")])
    async with user(ground, tmp_path, path) as editor:
        await editor.keys(":Tiller send go<CR>")
        await editor.until(chat_has("completed"))
        assert text_of(path) == EDITED
        assert EDITED in str(ground.provider.requests[-1]["body"]["messages"][-1]["content"])


async def test_after_a_restart_in_the_middle_of_a_run_the_chat_has_all_of_it_once(
    ground: Ground, tmp_path: Path, path: Path
) -> None:
    text = " ".join(f"w{number}" for number in range(40))
    slow = {**says(text), "deltas": 40, "delta_delay_s": 0.3}
    ground.provider.script([calls(EDIT, text="I look."), slow])
    async with user(ground, tmp_path, path) as editor:
        await editor.keys(":Tiller send The tests fail.<CR>")
        await editor.until(chat_has("w3"))
        assert "w39" not in await editor.ask(f"{CHAT} return chat")
    async with user(ground, tmp_path, path) as editor:
        await editor.until(chat_has("w39"))
        await editor.until(status_is("idle"))
        chat = await editor.ask(f"{CHAT} return chat")
        for once in ("The tests fail.", "I look.", text):
            assert chat.count(once) == 1


async def test_a_select_function_that_answers_later_decides_a_permission(
    ground: Ground, tmp_path: Path, path: Path
) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.provider.script([calls(("bash", {"command": "touch made"})), says("done")])
    async with user(ground, tmp_path, path) as editor:
        # As plugins do that show a window in place of the list.
        _ = await editor.ask(
            """
            vim.ui.select = function(items, options, on_choice)
              T = { title = options.prompt, choose = function() on_choice(items[1]) end }
            end
            """
        )
        await editor.keys(":Tiller send go<CR>")
        await editor.until(status_is("waiting for you"))
        assert "touch made" in await editor.until("return T and T.title")
        _ = await editor.ask("T.choose()")
        await editor.until(chat_has("completed"))
        assert (ground.root / "made").exists()


async def test_after_another_daemon_began_to_serve_the_chat_goes_on(
    ground: Ground, tmp_path: Path, path: Path
) -> None:
    ground.provider.script([says("first answer"), says("second answer")])
    async with user(ground, tmp_path, path) as editor:
        await editor.keys(":Tiller send go<CR>")
        await editor.until(chat_has("completed"))
        await anyio.to_thread.run_sync(end_daemon, ground.env)
        await editor.keys(":Tiller send again<CR>")
        await editor.until(chat_has("second answer"))
        await editor.until(status_is("idle"))
        chat = await editor.ask(f"{CHAT} return chat")
        assert [chat.count(text) for text in ("first answer", "second answer")] == [1, 1]


async def test_selected_lines_go_along_and_a_server_command_runs(
    ground: Ground, tmp_path: Path, path: Path
) -> None:
    ground.provider.script([says("done")])
    async with user(ground, tmp_path, path) as editor:
        await editor.keys(":2,3Tiller send explain<CR>")
        await editor.until(chat_has("completed"))
        assert "two\\nthree" in str(ground.provider.requests[-1]["body"]["messages"])
        await editor.keys(":Tiller status<CR>")
        await editor.until("return vim.fn.execute('messages'):find('model lab/m', 1, true) ~= nil")


async def test_the_help_names_every_command_and_has_its_tags(
    ground: Ground, tmp_path: Path, path: Path
) -> None:
    async with user(ground, tmp_path, path) as editor:
        await editor.keys(":helptags ALL<CR>")
        await editor.keys(":help tiller<CR>")
        text = await editor.text()
        shown = set(re.findall(r"`:Tiller!? (\w+)", page(NEOVIM)))
        assert {
            name for name in shown if f"Tiller {name}" not in text and f"`{name}`" not in text
        } == set()


def test_the_plugin_has_at_most_300_lines_besides_blank_ones() -> None:
    files = PLUGIN.rglob("*.lua")
    lines = [
        line for file in files for line in file.read_text("utf-8").splitlines() if line.strip()
    ]
    assert len(lines) <= 300
    assert max(map(len, lines)) <= 130
