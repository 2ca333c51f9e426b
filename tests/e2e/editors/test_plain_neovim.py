"""The real Neovim with the settings of its page and nothing else: chat file, code actions, questions, a stop, a restart."""

import json
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.clients.shims import end_daemon
from tests.support.programs.fresh_user import NEOVIM_BEFORE, neovim_user
from tests.support.programs.neovim_lists import choose
from tests.support.programs.real_editors import Name, Neovim, quit_editor

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

BOTH = pytest.mark.parametrize("name", ["neovim 0.11.4", "neovim 0.7.2"])
DISK = "one\n# tiller: make two a number\ntwo\n"
EDIT = ("edit", {"path": "a.py", "edits": [{"oldText": "\ntwo", "newText": "\n2"}]})
WORDS = " ".join(f"w{number}" for number in range(30))
SLOW = {**says(WORDS), "deltas": 30, "delta_delay_s": 0.15}
IN_CHAT = "return vim.fn.expand('%:t') == 'chat.md' and vim.bo.buftype == ''"


@pytest.fixture
def path(ground: Ground) -> Iterator[Path]:
    """Make a trusted project with a file, in which commands are asked about; the daemon ends with the test."""
    ground.configure(permission={"mode": "ask"}, sandbox="off", defaultProjectTrust="always")
    (ground.root / ".git").mkdir()
    yield ground.file("a.py", DISK)
    end_daemon(ground.env)


def user(ground: Ground, home: Path, path: Path, name: Name) -> AbstractAsyncContextManager[Neovim]:
    """Start Neovim with the settings that the page gives for this version."""
    section = NEOVIM_BEFORE if name == "neovim 0.7.2" else "Settings"
    return neovim_user(ground, home, path, name=name, section=section)


async def open_chat(editor: Neovim, name: Name) -> None:
    """Open the chat file as the page says."""
    await editor.keys(":Tiller chat<CR>")
    if name == "neovim 0.7.2":
        await _is_there(editor.root / ".tiller/chat.md")
        await editor.keys(":edit .tiller/chat.md<CR>")
    await editor.until(IN_CHAT)


async def _is_there(path: Path) -> None:
    with anyio.fail_after(20):
        while not path.exists():  # noqa: ASYNC110, ASYNC240 - a file tells nobody that it is there
            await anyio.sleep(0.05)


def has(words: str) -> str:
    """Give Lua that looks for words in the window."""
    text = "table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')"
    return f"return {text}:find([[{words}]], 1, true) ~= nil"


@BOTH
async def test_words_in_the_chat_file_are_sent_by_a_save_and_the_answer_grows_below(
    ground: Ground, tmp_path: Path, path: Path, name: Name
) -> None:
    ground.provider.script([SLOW])
    async with user(ground, tmp_path / "home", path, name) as editor:
        await open_chat(editor, name)
        await editor.keys("GoWhy?<Esc>:silent write<CR>")
        await editor.until(has("w2"))
        assert "w29" not in await editor.text()
        await editor.until(has("done"))
        text = await editor.text()
        assert text.index("## You") < text.index("Why?") < text.index("## Tiller")
        assert text.count(WORDS) == 1
        # Once more without new words: nothing is sent.
        await editor.keys(":silent write<CR>")
        await editor.keys(":Tiller status<CR>")
        assert len(ground.provider.requests) == 1


@BOTH
async def test_a_code_action_does_what_a_comment_asks(
    ground: Ground, tmp_path: Path, path: Path, name: Name
) -> None:
    ground.provider.script([calls(EDIT), says("done")])
    async with user(ground, tmp_path / "home", path, name) as editor:
        await editor.keys("2G:lua vim.lsp.buf.code_action()<CR>")
        await choose(editor, "Do what this comment asks")
        await editor.until(has("\n2"))
        assert "make two a number" in str(ground.provider.requests[0]["body"]["messages"][-1])


@BOTH
@pytest.mark.parametrize("button", ["Allow once", "Reject"], ids=["allowed", "refused"])
async def test_a_command_waits_for_the_users_word(
    ground: Ground, tmp_path: Path, path: Path, name: Name, button: str
) -> None:
    ground.provider.script([calls(("bash", {"command": "touch x"})), says("All done.")])
    async with user(ground, tmp_path / "home", path, name) as editor:
        await editor.keys(":Tiller send go<CR>")
        await choose(editor, button)
        _ = await ground.provider.requests_arrived(2)
        assert (ground.root / "x").exists() is (button == "Allow once")


@BOTH
async def test_a_run_is_stopped(ground: Ground, tmp_path: Path, path: Path, name: Name) -> None:
    ground.provider.script([{**says("never said"), "delay_s": 60}])
    async with user(ground, tmp_path / "home", path, name) as editor:
        await open_chat(editor, name)
        await editor.keys("Gogo<Esc>:silent write<CR>")
        _ = await ground.provider.requests_arrived(1)
        await editor.keys(":Tiller stop<CR>")
        _ = await ground.provider.clients_gone(1)
        await editor.until(has("cancelled"))


@BOTH
async def test_after_a_restart_in_the_middle_of_a_run_the_chat_file_has_all_of_it(
    ground: Ground, tmp_path: Path, path: Path, name: Name
) -> None:
    ground.provider.script([calls(EDIT, text="I look."), SLOW])
    async with user(ground, tmp_path / "home", path, name) as editor:
        await open_chat(editor, name)
        await editor.keys("GoRepair it.<Esc>:silent write<CR>")
        await editor.until(has("w3"))
        await quit_editor(editor)
    async with user(ground, tmp_path / "home", path, name) as editor:
        await open_chat(editor, name)
        await editor.until(has("done"))
        text = await editor.text()
        for once in ("Repair it.", "I look.", WORDS):
            assert text.count(once) == 1, text


@BOTH
async def test_a_model_is_chosen_from_inside_the_editor(
    ground: Ground, tmp_path: Path, path: Path, name: Name
) -> None:
    models = ground.dirs.config / "models.json"
    known = json.loads(models.read_text("utf-8"))
    listed = known["providers"]["lab"]["models"]
    listed.append({**listed[0], "id": "other"})
    models.write_text(json.dumps(known), encoding="utf-8")
    async with user(ground, tmp_path / "home", path, name) as editor:
        await editor.keys(":Tiller model<CR>")
        await choose(editor, "lab/other")
        told = "return vim.fn.execute('messages'):find('model lab/other', 1, true) ~= nil"
        with anyio.fail_after(20):
            while not await editor.ask(told):
                await editor.keys(":Tiller status<CR>")
