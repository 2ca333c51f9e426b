"""The Neovim page, followed word for word on a fresh profile: it ends with an edit in a buffer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.clients.shims import end_daemon
from tests.support.programs.fresh_user import NEOVIM, NEOVIM_BEFORE, neovim_user
from tests.support.programs.neovim_lists import answer_with
from tests.support.programs.pages import block
from tests.support.programs.real_editors import Name, Neovim

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

DISK = "one\ntwo\nthree\n"
EDIT = ("edit", {"path": "a.py", "edits": [{"oldText": "two", "newText": "2"}]})


def text_of(path: Path) -> str:
    return path.read_text("utf-8")


@pytest.fixture
def path(ground: Ground) -> Iterator[Path]:
    """Make a project that is new to Tiller, with a file; the daemon ends with the test."""
    ground.configure(defaultProjectTrust="ask")
    (ground.root / ".git").mkdir()
    yield ground.file("a.py", DISK)
    end_daemon(ground.env)


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
