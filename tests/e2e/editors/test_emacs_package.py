"""The Emacs package, installed as its page says on a fresh profile, in the real editor."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

import anyio
import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.clients.shims import end_daemon
from tests.support.harness.shared import ROOT
from tests.support.programs.fresh_user import EMACS, EMACS_PACKAGE, emacs_user
from tests.support.programs.pages import page
from tests.support.programs.real_editors import program
from tests.support.programs.real_emacs import Emacs

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

PACKAGE: Final = ROOT / "editors/emacs/tiller.el"
DISK = "one\ntwo\nthree\n"
EDITED = "one\n2\nthree\n"
EDIT = ("edit", {"path": "a.py", "edits": [{"oldText": "two", "newText": "2"}]})
CHAT = "(with-current-buffer (tiller--chat-buffer (tiller--server-or-lose)) (buffer-string))"
MARKS = """
    (mapcar (lambda (overlay)
              (list (line-number-at-pos (overlay-start overlay)) (symbol-name (overlay-get overlay 'face))))
            (tiller--overlays (point-min) (point-max)))
"""


def chat_has(text: str) -> str:
    """Return Emacs Lisp that looks for a text in the chat buffer."""
    return f"(if (string-search {json.dumps(text)} {CHAT}) t :false)"


def status_has(text: str) -> str:
    """Return Emacs Lisp that looks for a text in the mode line."""
    return f'(if (string-search "{text}" (or (tiller-status) "")) t :false)'


def marks(count: int) -> str:
    """Return Emacs Lisp that compares the number of marked changes."""
    return f"(if (= (length {MARKS}) {count}) t :false)"


def text_of(path: Path) -> str:
    return path.read_text("utf-8")


@pytest.fixture
def path(ground: Ground) -> Iterator[Path]:
    """Create a project with a file; the daemon ends with the test."""
    yield ground.file("a.py", DISK)
    end_daemon(ground.env)


def user(ground: Ground, tmp_path: Path, path: Path) -> AbstractAsyncContextManager[Emacs]:
    """Start Emacs with the package on the file, for as long as the block."""
    return emacs_user(ground, tmp_path / "home", path, section=EMACS_PACKAGE)


async def send(editor: Emacs, text: str) -> None:
    """Send a prompt."""
    await editor.ask(f'(progn (tiller-send "{text}") t)')


async def test_a_prompt_edits_an_unsaved_buffer_and_undo_takes_it_back(
    ground: Ground, tmp_path: Path, path: Path
) -> None:
    ground.configure(defaultProjectTrust="ask")
    ground.provider.script([calls(EDIT, text="I look."), says("All is well.")])
    async with user(ground, tmp_path, path) as editor:
        await editor.answer_with("Trust this folder")
        await editor.type_at_top("unsaved\n")
        await send(editor, "The tests fail.")
        await editor.until(chat_has("> completed"))
        assert await editor.text() == f"unsaved\n{EDITED}"
        assert text_of(path) == DISK
        chat = await editor.ask(CHAT)
        order = ["## You", "The tests fail.", "## Tiller", "I look.", "a.py · ok", "All is well."]
        assert sorted(order, key=chat.index) == order
        await editor.until(marks(1))
        assert await editor.ask(f"(vconcat (mapcar #'vconcat {MARKS}))") == [[3, "tiller-changed"]]
        await editor.undo()
        assert await editor.text() == f"unsaved\n{DISK}"


async def test_a_change_is_kept_or_rejected_where_its_mark_is(
    ground: Ground, tmp_path: Path, path: Path
) -> None:
    more = {"oldText": "three\n", "newText": "three\nfour\nfive\n"}
    first = {"oldText": "one", "newText": "1"}
    edit = ("edit", {"path": "a.py", "edits": [first, more]})
    ground.provider.script([calls(edit), says("done")])
    async with user(ground, tmp_path, path) as editor:
        await send(editor, "go")
        await editor.until(chat_has("> completed"))
        await editor.until(marks(2))
        await editor.until(status_has("2 to review"))
        await editor.ask("(progn (goto-char (point-min)) (tiller-next-change) t)")
        assert await editor.ask("(line-number-at-pos)") == 4
        await editor.ask("(progn (tiller-reject) t)")
        await editor.until(marks(1))
        assert await editor.text() == "1\ntwo\nthree\n"
        await editor.ask("(progn (tiller-accept t) t)")
        await editor.until(marks(0))
        assert await editor.text() == "1\ntwo\nthree\n"


async def test_a_permission_request_is_answered_in_the_minibuffer(
    ground: Ground, tmp_path: Path, path: Path
) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.provider.script([calls(("bash", {"command": "touch made"})), says("done")])
    async with user(ground, tmp_path, path) as editor:
        await editor.answer_with("Allow once")
        await send(editor, "go")
        await editor.until(chat_has("> completed"))
        assert (ground.root / "made").exists()
        assert "touch made" in (await editor.ask("(vconcat t-asked)"))[0]


async def test_a_run_is_steered_and_stopped(ground: Ground, tmp_path: Path, path: Path) -> None:
    slow = {**calls(("bash", {"command": "echo first"})), "delay_s": 1.0}
    ground.provider.script([slow, {**says("never"), "delay_s": 60}])
    async with user(ground, tmp_path, path) as editor:
        await send(editor, "go")
        await editor.until(status_has("running"))
        await send(editor, "use another way")
        await editor.until(chat_has("use another way"))
        assert "use another way" in str(ground.provider.requests[-1]["body"]["messages"])
        await editor.ask("(progn (tiller-stop) t)")
        await editor.until(chat_has("> cancelled"))
        await editor.until(status_has("idle"))


async def test_a_file_is_saved_for_a_command_and_a_restarted_editor_shows_the_session(
    ground: Ground, tmp_path: Path, path: Path
) -> None:
    run = ("bash", {"command": "cat a.py"})
    ground.provider.script([calls(EDIT, text="I look."), calls(run), says("All is well.")])
    async with user(ground, tmp_path, path) as editor:
        await send(editor, "The tests fail.")
        await editor.until(chat_has("> completed"))
        assert text_of(path) == EDITED
        assert EDITED in str(ground.provider.requests[-1]["body"]["messages"][-1]["content"])
    async with user(ground, tmp_path, path) as editor:
        await editor.until(chat_has("All is well."))
        chat = await editor.ask(CHAT)
        for once in ("The tests fail.", "I look.", "All is well."):
            assert chat.count(once) == 1
        await editor.until(marks(1))


async def test_after_another_daemon_began_to_serve_the_chat_goes_on(
    ground: Ground, tmp_path: Path, path: Path
) -> None:
    ground.provider.script([says("first answer"), says("second answer")])
    async with user(ground, tmp_path, path) as editor:
        await send(editor, "go")
        await editor.until(chat_has("> completed"))
        await anyio.to_thread.run_sync(end_daemon, ground.env)
        await send(editor, "again")
        await editor.until(chat_has("second answer"))
        await editor.until(status_has("idle"))
        chat = await editor.ask(CHAT)
        assert [chat.count(text) for text in ("first answer", "second answer")] == [1, 1]


def _batch(*forms: str) -> str:
    """Evaluate forms in an Emacs of its own and return its output."""
    setup = "(progn (require 'package) (package-initialize))"
    argv = [program("emacs with eglot"), "-q", "--no-site-file", "--batch"]
    for form in (setup, *forms):
        argv += ["--eval", form]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_package_compiles_without_a_warning_and_follows_the_style_of_docstrings(
    tmp_path: Path,
) -> None:
    elc = f'(setq byte-compile-dest-file-function (lambda (_) "{tmp_path}/tiller.elc"))'
    check = f'(progn (require (quote checkdoc)) (checkdoc-file "{PACKAGE}"))'
    output = _batch(elc, f'(byte-compile-file "{PACKAGE}")', check)
    assert (tmp_path / "tiller.elc").exists()
    assert "tiller.el:" not in output, output


def test_the_page_names_every_command_and_the_version_is_that_of_tiller() -> None:
    text = PACKAGE.read_text("utf-8")
    commands = re.findall(r"^;;;###autoload\n\(defun (tiller-(?!setup)[a-z-]+)", text, re.MULTILINE)
    assert len(commands) == 9
    assert [name for name in commands if f"`{name}`" not in page(EMACS)] == []
    version = json.loads((ROOT / "vscode-client/package.json").read_text("utf-8"))["version"]
    assert f";; Version: {version}\n" in text
