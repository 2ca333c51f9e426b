"""The real Neovim with the settings of its page: a plan is revised and approved, two tasks work, one is merged and undone."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from tests.e2e.chat.test_chat_tasks import (
    GREETINGS,
    LOOK,
    PLANNING,
    SHOUTED,
    USES,
    WORKING,
    WRITE,
)
from tests.e2e.editors.test_plain_neovim import BOTH, has, open_chat, user
from tests.support.clients.server import Ground
from tests.support.clients.shims import end_daemon
from tests.support.programs.neovim_lists import choose
from tests.support.programs.real_editors import Name, Neovim

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

UNSAVED = "# to do: say good night, too\n"
PROGRESS = f"""
    local now = vim.lsp.status and vim.lsp.status() or vim.inspect(vim.lsp.util.get_progress_messages())
    seen = (seen or "") .. now
    return seen:find("{LOOK["description"]}", 1, true) ~= nil and seen:find("{WRITE["description"]}", 1, true) ~= nil
"""
"""Lua that collects the lines of progress and looks for both tasks."""

REPORTED = "I have the report."
BEFORE_REPORTS = len(PLANNING) + len(WORKING) - 2
"""How many requests the model has answered before the first report is taken in."""

DONE_TWICE = """
    local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\\n")
    return select(2, text:gsub("\\n> done", "")) == 2
"""


@pytest.fixture
def path(ground: Ground) -> Iterator[Path]:
    """Make a trusted project under Git with two files; the daemon ends with the test."""
    ground.configure(permission={"mode": "ask"}, sandbox="off", defaultProjectTrust="always")
    _ = ground.file("app.py", USES)
    path = ground.file("greet.py", GREETINGS)
    ground.commit()
    yield path
    end_daemon(ground.env)


def shows_message(text: str) -> str:
    """Return Lua that looks for a text in the messages."""
    return f"return vim.fn.execute('messages'):find([[{text}]], 1, true) ~= nil"


async def write(editor: Neovim, text: str) -> None:
    """Write at the end of the chat file, and save it."""
    await editor.keys(f"Go{text}<Esc>:silent write<CR>")


@BOTH
async def test_a_plan_is_revised_and_the_changes_of_a_task_are_merged_into_unsaved_text(
    ground: Ground, tmp_path: Path, path: Path, name: Name
) -> None:
    ground.provider.script(PLANNING)
    async with user(ground, tmp_path / "home", path, name) as editor:
        await editor.keys(f"Go{UNSAVED.strip()}<Esc>")
        await editor.keys(":set hidden<CR>:Tiller mode plan<CR>")
        await editor.until(shows_message("the permission mode is plan now"))
        await open_chat(editor, name)
        await write(editor, "Plan how to greet louder.")
        await editor.until(has("Shall I do it like this?"))
        await editor.until(has("> done"))
        await write(editor, "Leave noon alone, and look first who greets.")
        await editor.until(has("Now noon stays, and we look first."))
        text = await editor.text()
        assert "1. Put the three greetings into upper case." in text
        assert "3. `noon` stays as it is." in text
        assert text.count("Answer with tiller.plan") == 2
        ground.provider.script(WORKING)
        await editor.until(DONE_TWICE)
        await editor.keys(":Tiller plan<CR>")
        await choose(editor, "Yes, and ask before risky steps")
        await editor.until(PROGRESS)
        await editor.until(has("Its changes wait in a worktree: tiller.mergeTask merges them."))
        # One edit changed the line of a task and added below it: nothing of it is there twice.
        text = await editor.text()
        assert text.count("Both tasks work.") == 1
        assert text.count(REPORTED) <= len(ground.provider.requests) - BEFORE_REPORTS
        await editor.keys(":buffer greet.py<CR>")
        assert await editor.text() == GREETINGS + UNSAVED
        await editor.keys(":Tiller mergeTask<CR>")
        await editor.until(shows_message("into greet.py; tiller.restore takes it back"))
        await editor.until(has("GOOD EVENING"))
        assert await editor.text() == SHOUTED + UNSAVED
        assert await editor.is_modified()
        await editor.undo()
        assert await editor.text() == GREETINGS + UNSAVED
        assert b"good evening" in await anyio.Path(path).read_bytes()
