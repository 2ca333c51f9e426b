"""The Emacs page, followed word for word on a fresh profile: it ends with an edit in a buffer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.clients.shims import end_daemon
from tests.support.programs.fresh_user import EMACS, emacs_user
from tests.support.programs.pages import page

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

DISK = "one\ntwo\nthree\n"
EDIT = ("edit", {"path": "a.py", "edits": [{"oldText": "two", "newText": "2"}]})
WORDS = "The tests fail. Please repair them."


def text_of(path: Path) -> str:
    return path.read_text("utf-8")


@pytest.fixture
def path(ground: Ground) -> Iterator[Path]:
    """Make a project that is new to Tiller, with a file; the daemon ends with the test."""
    ground.configure(defaultProjectTrust="ask")
    yield ground.file("a.py", DISK)
    end_daemon(ground.env)


async def test_the_settings_and_the_first_words_lead_to_an_edit_in_the_buffer(
    ground: Ground, tmp_path: Path, path: Path
) -> None:
    assert f"`M-x tiller RET send RET {WORDS} RET`" in page(EMACS)
    ground.provider.script([calls(EDIT), says("done")])
    async with emacs_user(ground, tmp_path / "home", path) as editor:
        await editor.answer_with("Trust this folder")
        await editor.ask(f'(progn (tiller "send" "{WORDS}") t)')
        await editor.until('(if (string-match "^2$" (buffer-string)) t :false)')
        assert await editor.is_modified()
        assert text_of(path) == DISK
        await editor.undo()
        assert await editor.text() == DISK
        assert WORDS in str(ground.provider.requests[0]["body"]["messages"][-1])
