"""What the real editors said once, said again: the server answers and asks as it did then."""

import os
import shlex
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.e2e.editors.traces import TRACES, placed, scrubbed
from tests.support.clients.server import SERVER, TILLER, Ground, calls, says
from tests.support.programs.fresh_user import NEOVIM_BEFORE, emacs_user, installed, neovim_user
from tests.support.programs.neovim_lists import choose
from tests.support.programs.real_editors import Name, quit_editor
from tiller_server.cli.trace.replay import replay

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

ENVIRONMENT: Mapping[str, str] = os.environ  # noqa: TID251 - to know whether traces are to be made
RECORD = "TILLER_RECORD_TRACES"
TEXT = "one\n# tiller: make two a number\ntwo\n"
EDIT = ("edit", {"path": "a.py", "edits": [{"oldText": "\ntwo", "newText": "\n2"}]})
NAMES = ("neovim-0.11.4", "neovim-0.7.2", "emacs-eglot-1.9")


def prepared(ground: Ground) -> Path:
    """Make the project and the model of the recordings."""
    ground.configure(permission={"mode": "ask"}, sandbox="off", defaultProjectTrust="always")
    (ground.root / ".git").mkdir()
    touch = ("bash", {"command": "touch x"})
    ground.provider.script([calls(EDIT), calls(touch), says("All is well.")])
    return ground.file("a.py", TEXT)


@pytest.mark.parametrize("name", NAMES)
async def test_what_a_real_editor_said_is_answered_as_ever(
    ground: Ground, tmp_path: Path, name: str
) -> None:
    prepared(ground)
    trace = placed(TRACES / f"{name}.trace", root=ground.root, folder=tmp_path)
    asked = [one.method for one in trace if one.side == "server" and one.id and one.method]
    assert {"workspace/applyEdit", "window/showMessageRequest"} <= set(asked)
    again = await replay(tuple(trace), SERVER, env=ground.env, prompts="sent", pace="fast")
    assert again.differences == []
    answered = [one.id for one in trace if one.side == "server" and one.method is None]
    assert again.compared == len(answered)


# ---------------------------------------------------------------------- how they are made


@asynccontextmanager
async def recording(ground: Ground, home: Path, name: str) -> AsyncGenerator[None]:
    """Put a `tiller` in the user's way that keeps what is said, and lay it down when the block is over."""
    trace = home / "said.trace"
    _ = installed(ground, home)
    argv = [*TILLER, "trace", "record", str(trace), "--", *SERVER]
    (home / "stand-in/tiller").write_text(f"#!/bin/sh\nexec {shlex.join(argv)}\n", encoding="utf-8")
    (home / "stand-in/tiller").chmod(0o755)
    yield
    TRACES.mkdir(parents=True, exist_ok=True)
    kept = scrubbed(trace, root=ground.root)
    (TRACES / f"{name}.trace").write_text(kept, encoding="utf-8")


@pytest.mark.skipif(ENVIRONMENT.get(RECORD) != "1", reason=f"{RECORD}=1 records the traces anew")
@pytest.mark.parametrize("name", NAMES)
async def test_traces_are_recorded(ground: Ground, tmp_path: Path, name: str) -> None:
    path, home = prepared(ground), tmp_path / "home"
    async with recording(ground, home, name):
        if name.startswith("neovim"):
            await _in_neovim(ground, home, path, name)
        else:
            await _in_emacs(ground, home, path)


async def _in_neovim(ground: Ground, home: Path, path: Path, name: str) -> None:
    version: Name = "neovim 0.11.4" if name == NAMES[0] else "neovim 0.7.2"
    section = "Settings" if name == NAMES[0] else NEOVIM_BEFORE
    async with neovim_user(ground, home, path, name=version, section=section) as editor:
        await editor.keys("ggOtyped<Esc>3G:lua vim.lsp.buf.code_action()<CR>")
        await choose(editor, "Do what this comment asks")
        await choose(editor, "Allow once")
        await choose(editor, "Run on old files")
        _ = await ground.provider.requests_arrived(3)
        await editor.keys(":silent write<CR>:Tiller status<CR>")
        await editor.until("return true")
        await quit_editor(editor)


async def _in_emacs(ground: Ground, home: Path, path: Path) -> None:
    async with emacs_user(ground, home, path) as editor:
        await editor.answer_with(
            "Tiller: Do what this comment asks", "Allow once", "Run on old files"
        )
        await editor.type_at_top("typed\n")
        await editor.ask(
            """
            (progn (goto-char (point-min)) (forward-line 2)
                   (call-interactively 'eglot-code-actions) t)
            """
        )
        _ = await ground.provider.requests_arrived(3)
        await editor.save()
        await editor.ask('(progn (tiller "status") t)')
        await editor.ask("(progn (eglot-shutdown (eglot-current-server)) t)")
