"""The real Emacs with the settings of its page and nothing else: chat file, code actions, questions, a stop, a restart."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.clients.shims import end_daemon
from tests.support.programs.fresh_user import emacs_user
from tests.support.programs.real_emacs import Emacs

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

DISK = "one\n# tiller: make two a number\ntwo\n"
EDIT = ("edit", {"path": "a.py", "edits": [{"oldText": "\ntwo", "newText": "\n2"}]})
WORDS = " ".join(f"w{number}" for number in range(30))
SLOW = {**says(WORDS), "deltas": 30, "delta_delay_s": 0.15}


@pytest.fixture
def path(ground: Ground) -> Iterator[Path]:
    """Make a trusted project with a file, in which commands are asked about; the daemon ends with the test."""
    ground.configure(permission={"mode": "ask"}, sandbox="off", defaultProjectTrust="always")
    (ground.root / ".git").mkdir()
    yield ground.file("a.py", DISK)
    end_daemon(ground.env)


async def open_chat(editor: Emacs) -> None:
    """Open the chat file as the page says for eglot that opens no documents for a server."""
    await editor.ask('(progn (tiller "chat") t)')
    chat = editor.root / ".tiller/chat.md"
    with anyio.fail_after(20):
        while not chat.exists():  # noqa: ASYNC110 - a file tells nobody that it is there
            await anyio.sleep(0.05)
    await editor.open(chat)
    await editor.until("(if (eglot-current-server) t :false)")


async def write_and_save(editor: Emacs, words: str) -> None:
    """Write words at the end of the buffer and save it."""
    await editor.ask(f'(progn (goto-char (point-max)) (insert "{words}\\n") (save-buffer) t)')


def has(words: str) -> str:
    """Give Emacs Lisp that looks for words in the buffer."""
    return f'(if (string-match-p (regexp-quote "{words}") (buffer-string)) t :false)'


async def test_words_in_the_chat_file_are_sent_by_a_save_and_the_answer_grows_below(
    ground: Ground, tmp_path: Path, path: Path
) -> None:
    ground.provider.script([SLOW])
    async with emacs_user(ground, tmp_path / "home", path) as editor:
        await open_chat(editor)
        await write_and_save(editor, "Why?")
        await editor.until(has("w2"))
        assert "w29" not in await editor.text()
        await editor.until(has("done"))
        text = await editor.text()
        assert text.index("## You") < text.index("Why?") < text.index("## Tiller")
        assert text.count(WORDS) == 1


async def test_a_code_action_does_what_a_comment_asks(
    ground: Ground, tmp_path: Path, path: Path
) -> None:
    ground.provider.script([calls(EDIT), says("done")])
    async with emacs_user(ground, tmp_path / "home", path) as editor:
        await editor.answer_with("Tiller: Do what this comment asks")
        await editor.ask(
            """
            (progn (goto-char (point-min)) (forward-line 1)
                   (call-interactively 'eglot-code-actions) t)
            """
        )
        await editor.until(has("\\n2"))
        assert "make two a number" in str(ground.provider.requests[0]["body"]["messages"][-1])


@pytest.mark.parametrize("button", ["Allow once", "Reject"], ids=["allowed", "refused"])
async def test_a_command_waits_for_the_users_word(
    ground: Ground, tmp_path: Path, path: Path, button: str
) -> None:
    ground.provider.script([calls(("bash", {"command": "touch x"})), says("All done.")])
    async with emacs_user(ground, tmp_path / "home", path) as editor:
        await editor.answer_with(button)
        await editor.ask('(progn (tiller "send" "go") t)')
        _ = await ground.provider.requests_arrived(2)
        assert (ground.root / "x").exists() is (button == "Allow once")


async def test_a_run_is_stopped(ground: Ground, tmp_path: Path, path: Path) -> None:
    ground.provider.script([{**says("never said"), "delay_s": 60}])
    async with emacs_user(ground, tmp_path / "home", path) as editor:
        await open_chat(editor)
        await write_and_save(editor, "go")
        _ = await ground.provider.requests_arrived(1)
        await editor.ask('(progn (tiller "stop") t)')
        _ = await ground.provider.clients_gone(1)
        await editor.until(has("cancelled"))


async def test_after_a_restart_in_the_middle_of_a_run_the_chat_file_has_all_of_it(
    ground: Ground, tmp_path: Path, path: Path
) -> None:
    ground.provider.script([calls(EDIT, text="I look."), SLOW])
    async with emacs_user(ground, tmp_path / "home", path) as editor:
        await open_chat(editor)
        await write_and_save(editor, "Repair it.")
        await editor.until(has("w3"))
    async with emacs_user(ground, tmp_path / "home", path) as editor:
        await open_chat(editor)
        await editor.until(has("done"))
        text = await editor.text()
        for once in ("Repair it.", "I look.", WORDS):
            assert text.count(once) == 1, text
