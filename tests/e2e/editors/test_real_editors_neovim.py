"""Neovim as its makers ship it, with no plugin of ours: edits are the editor's, each call is one undo, and lies are noticed."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.server import SERVER, Ground, calls, prompt, says, tool_texts
from tests.support.programs.real_editors import Name, Neovim, neovim

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

Json = dict[str, Any]
VERSIONS: tuple[Name, ...] = ("neovim 0.11.4", "neovim 0.7.2")
BOTH = pytest.mark.parametrize("name", VERSIONS)
DISK = "one\ntwo\nthree\nfour\nfive\n"
THOUGHT = "# 🦜 a thought\n"
FUNCTIONS = "def a():\n    return 1\n\n\ndef c():\n    return 3\n\n\na()\n"
ADDED = (
    ("return 1", "return 1 + 0\n    # the first"),
    ("\n\n\na()", "\n\n\ndef d():\n    return 4\n\n\na()"),
)
"""Replacements of which the second inserts a function between empty lines."""
MORE_FUNCTIONS = FUNCTIONS.replace(*ADDED[0]).replace(*ADDED[1])
OFF = {"agent": {"edit": {"saveBarrier": "off"}}}


def edit(*pairs: tuple[str, str]) -> tuple[str, Json]:
    """Make a call of the tool that replaces texts of the file."""
    edits = [{"oldText": old, "newText": new} for old, new in pairs]
    return "edit", {"path": "a.py", "edits": edits}


READ = ("read", {"path": "a.py"})


@asynccontextmanager
async def opened(
    ground: Ground, home: Path, name: Name, options: Json | None = None, *, text: str = DISK
) -> AsyncGenerator[tuple[Neovim, Path]]:
    """Start Neovim on a file with the server attached, for as long as the block."""
    path = ground.file("a.py", text)
    async with neovim(name, env=ground.env, root=ground.root, home=home) as editor:
        await editor.open(path)
        await editor.serve(SERVER, options)
        yield editor, path


async def run(editor: Neovim, words: str = "go") -> None:
    """Say something and wait until everything is done."""
    result = await editor.request("agent/prompt", prompt(words, wait=True))
    assert result["status"] == "completed", result


@BOTH
async def test_an_edit_lands_in_a_buffer_with_unsaved_text_and_the_disk_stays(
    ground: Ground, tmp_path: Path, name: Name
) -> None:
    ground.provider.script([calls(READ), calls(edit(("two", "2"), ("five", "5"))), says("done")])
    async with opened(ground, tmp_path / "nvim", name) as (editor, path):
        await editor.keys("ggO# 🦜 a thought<Esc>")
        await run(editor)
        assert await editor.text() == f"{THOUGHT}one\n2\nthree\nfour\n5\n"
        assert await editor.is_modified()
        assert path.read_text("utf-8") == DISK
        read, edited = tool_texts(ground.provider.requests[-1])
        assert read.startswith(THOUGHT)
        assert "Successfully replaced 2 block(s)" in edited
        assert "unsaved" in edited.lower()


@BOTH
async def test_what_is_added_among_equal_lines_is_there_once(
    ground: Ground, tmp_path: Path, name: Name
) -> None:
    ground.provider.script([calls(READ), calls(edit(*ADDED)), says("done")])
    async with opened(ground, tmp_path / "nvim", name, text=FUNCTIONS) as (editor, _):
        # Neovim delays its first report. After that it reports each place of an edit alone.
        await editor.keys("ggO# 🦜 a thought<Esc>")
        await run(editor)
        assert await editor.text() == THOUGHT + MORE_FUNCTIONS
        _, edited = tool_texts(ground.provider.requests[-1])
        assert "Successfully replaced 2 block(s)" in edited
        assert "changed elsewhere" not in edited


@BOTH
async def test_each_tool_call_is_one_undo_and_the_model_hears_of_it(
    ground: Ground, tmp_path: Path, name: Name
) -> None:
    first, second = edit(("two", "2"), ("five", "5")), edit(("one", "1"), ("four", "4"))
    ground.provider.script([calls(first), calls(second), says("done"), says("I see")])
    async with opened(ground, tmp_path / "nvim", name) as (editor, _):
        await editor.keys("ggO# 🦜 a thought<Esc>")
        await run(editor)
        after_second = await editor.text()
        steps = [after_second]
        for _ in range(3):
            await editor.undo()
            steps.append(await editor.text())
        assert steps == [
            f"{THOUGHT}1\n2\nthree\n4\n5\n",
            f"{THOUGHT}one\n2\nthree\nfour\n5\n",
            f"{THOUGHT}{DISK}",
            DISK,
        ]
        for _ in range(2):
            await editor.redo()
        assert await editor.text() == steps[1]
        await run(editor, "what now?")
        told = str(ground.provider.requests[-1]["body"]["messages"])
        # Neovim tells of quick changes as one: what counts is what is left of them.
        undone, redone = told.count("The user undid your edit"), told.count("brought your edit of")
        assert undone - redone == 1


@BOTH
@pytest.mark.parametrize(
    ("typed", "lands"),
    [
        pytest.param("silent normal! ggOtyped meanwhile", True, id="elsewhere"),
        pytest.param("silent normal! 2Gccdeux", False, id="in the same line"),
    ],
)
async def test_a_stale_edit_is_noticed_although_neovim_says_it_was_applied(
    ground: Ground, tmp_path: Path, name: Name, typed: str, lands: bool
) -> None:
    late = {**calls(edit(("two", "2"))), "delay_s": 0.7}
    ground.provider.script([calls(READ), late, says("done")])
    async with opened(ground, tmp_path / "nvim", name) as (editor, path):
        await editor.send("agent/prompt", prompt("go", wait=True))
        # The editor hears nothing while the edit arrives, and then has text that the edit was not made for.
        await editor.busy(after_s=0.3, for_s=2.0, then=typed)
        assert (await editor.answer())["status"] == "completed"
        text, told = await editor.text(), tool_texts(ground.provider.requests[-1])[-1]
        meanwhile = "typed meanwhile\n" if lands else ""
        middle = "2" if lands else "deux"
        assert text == f"{meanwhile}one\n{middle}\nthree\nfour\nfive\n"
        assert ("Successfully replaced" in told) is lands
        assert lands or "deux" in told
        assert path.read_text("utf-8") == DISK


@BOTH
async def test_the_model_is_told_that_a_command_reads_the_old_file(
    ground: Ground, tmp_path: Path, name: Name
) -> None:
    command = ("bash", {"command": "cat a.py"})
    ground.provider.script([calls(edit(("two", "2"))), calls(command), says("done")])
    async with opened(ground, tmp_path / "nvim", name, OFF) as (editor, path):
        await run(editor)
        told = tool_texts(ground.provider.requests[-1])[-1]
        assert told.startswith(DISK)
        assert f"programs read the old text from the disk: {path}" in told


@BOTH
async def test_the_user_is_asked_to_save_and_the_command_reads_what_they_saved(
    ground: Ground, tmp_path: Path, name: Name
) -> None:
    command = ("bash", {"command": "cat a.py"})
    ground.provider.script(
        [
            calls(edit(("two", "2"))),
            calls(command),
            calls(edit(("five", "5"))),
            calls(command),
            says("done"),
        ]
    )
    async with opened(ground, tmp_path / "nvim", name) as (editor, path):
        # A user who looks at what is asked, saves, and says so.
        _ = await editor.ask(
            """
            T.asked = {}
            vim.lsp.handlers["window/showMessageRequest"] = function(_, params)
              table.insert(T.asked, params.message)
              vim.cmd("silent write")
              return params.actions[1]
            end
            """
        )
        await run(editor)
        asked = await editor.ask("return T.asked")
        assert len(asked) == 1
        assert "a.py" in asked[0]
        _, read, _, later = tool_texts(ground.provider.requests[-1])
        assert read == "one\n2\nthree\nfour\nfive\n"
        # One question a session: after that the model is told.
        assert later.startswith("one\n2\nthree\nfour\nfive\n")
        assert f"programs read the old text from the disk: {path}" in later


@BOTH
async def test_an_edit_waits_for_the_end_of_insert_mode(
    ground: Ground, tmp_path: Path, name: Name
) -> None:
    late = {**calls(edit(("five", "5"))), "delay_s": 0.5}
    ground.provider.script([late, says("done")])
    async with opened(ground, tmp_path / "nvim", name) as (editor, path):
        uri = path.as_uri()
        context: Json = {
            "focus": {"uri": uri, "version": 1, "selections": [], "visible": [], "mode": "insert"},
            "open": [uri],
        }
        await editor.keys("ggOtyping")
        await editor.notify("agent/editorContext", context)
        await editor.send("agent/prompt", prompt("go", wait=True))
        await editor.until("return vim.fn.mode() == 'i'")
        await editor.keys(" goes on<Esc>")
        context["focus"]["mode"] = "normal"
        await editor.notify("agent/editorContext", context)
        assert (await editor.answer())["status"] == "completed"
        assert await editor.text() == "typing goes on\none\ntwo\nthree\nfour\n5\n"
        await editor.undo()
        assert await editor.text() == f"typing goes on\n{DISK}"


@BOTH
async def test_a_new_file_is_made_on_the_disk_and_none_is_ever_emptied(
    ground: Ground, tmp_path: Path, name: Name
) -> None:
    new = ("write", {"path": "new/b.py", "content": "b = 1\n"})
    over = ("write", {"path": "a.py", "content": "a = 1\n"})
    ground.provider.script([calls(new), calls(READ), calls(over), says("done")])
    async with opened(ground, tmp_path / "nvim", name) as (editor, path):
        await run(editor)
        assert (ground.root / "new/b.py").read_text("utf-8") == "b = 1\n"
        assert await editor.text() == "a = 1\n"
        assert path.read_text("utf-8") == DISK
        await editor.undo()
        assert await editor.text() == DISK
