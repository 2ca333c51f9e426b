"""Emacs with eglot as their makers ship them: edits are the editor's, each call is one undo, and nothing is lost."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.server import SERVER, Ground, calls, prompt, says, tool_texts
from tests.support.programs.real_emacs import Emacs, emacs

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

Json = dict[str, Any]
DISK = "one\ntwo\nthree\nfour\nfive\n"
THOUGHT = "# 🦜 a thought\n"
OFF = {"agent": {"edit": {"saveBarrier": "off"}}}
READ = ("read", {"path": "a.py"})


def edit(*pairs: tuple[str, str]) -> tuple[str, Json]:
    """Make a call of the tool that replaces texts of the file."""
    edits = [{"oldText": old, "newText": new} for old, new in pairs]
    return "edit", {"path": "a.py", "edits": edits}


@asynccontextmanager
async def opened(
    ground: Ground, home: Path, options: Json | None = None
) -> AsyncGenerator[tuple[Emacs, Path]]:
    """Start Emacs on a file with the server attached, for as long as the block."""
    path = ground.file("a.py", DISK)
    async with emacs(env=ground.env, root=ground.root, home=home) as editor:
        await editor.open(path)
        await editor.serve(SERVER, options)
        yield editor, path


async def run(editor: Emacs, words: str = "go") -> None:
    """Say something and wait until everything is done."""
    result = await editor.request("agent/prompt", prompt(words, wait=True))
    assert result["status"] == "completed", result


async def test_an_edit_lands_in_a_buffer_with_unsaved_text_and_each_call_is_one_undo(
    ground: Ground, tmp_path: Path
) -> None:
    first, second = edit(("two", "2"), ("five", "5")), edit(("one", "1"), ("four", "4"))
    ground.provider.script([calls(READ), calls(first), calls(second), says("done"), says("ah")])
    async with opened(ground, tmp_path / "emacs") as (editor, path):
        await editor.type_at_top(THOUGHT)
        await run(editor)
        steps = [await editor.text()]
        for _ in range(3):
            await editor.undo()
            steps.append(await editor.text())
        assert steps == [
            f"{THOUGHT}1\n2\nthree\n4\n5\n",
            f"{THOUGHT}one\n2\nthree\nfour\n5\n",
            f"{THOUGHT}{DISK}",
            DISK,
        ]
        assert path.read_text("utf-8") == DISK
        read, edited, _ = tool_texts(ground.provider.requests[-1])
        assert read.startswith(THOUGHT)
        assert "Successfully replaced 2 block(s)" in edited
        await run(editor, "what now?")
        told = str(ground.provider.requests[-1]["body"]["messages"])
        assert told.count("The user undid your edit") == 2


@pytest.mark.parametrize(
    ("typed", "lands"),
    [
        pytest.param('(goto-char (point-min)) (insert "typed meanwhile\\n")', True, id="elsewhere"),
        pytest.param(
            '(goto-char (point-min)) (search-forward "two") (replace-match "deux")',
            False,
            id="in the same line",
        ),
    ],
)
async def test_a_stale_edit_is_noticed(
    ground: Ground, tmp_path: Path, typed: str, lands: bool
) -> None:
    late = {**calls(edit(("two", "2"))), "delay_s": 0.7}
    ground.provider.script([calls(READ), late, says("done")])
    async with opened(ground, tmp_path / "emacs") as (editor, path):
        await editor.send("agent/prompt", prompt("go", wait=True))
        await editor.busy(after_s=0.3, for_s=2.0, then=typed)
        assert (await editor.answer())["status"] == "completed"
        text, told = await editor.text(), tool_texts(ground.provider.requests[-1])[-1]
        meanwhile = "typed meanwhile\n" if lands else ""
        assert text == f"{meanwhile}one\n{'2' if lands else 'deux'}\nthree\nfour\nfive\n"
        assert ("Successfully replaced" in told) is lands
        assert lands or "deux" in told
        assert path.read_text("utf-8") == DISK


async def test_the_model_is_told_that_a_command_reads_the_old_file(
    ground: Ground, tmp_path: Path
) -> None:
    command = ("bash", {"command": "cat a.py"})
    ground.provider.script(
        [calls(edit(("two", "2"))), calls(command), says("done"), calls(command), says("done")]
    )
    async with opened(ground, tmp_path / "emacs", OFF) as (editor, path):
        await run(editor)
        told = tool_texts(ground.provider.requests[-1])[-1]
        assert told.startswith(DISK)
        assert f"programs read the old text from the disk: {path}" in told
        await editor.save()
        await run(editor, "again")
        assert tool_texts(ground.provider.requests[-1])[-1] == "one\n2\nthree\nfour\nfive\n"
