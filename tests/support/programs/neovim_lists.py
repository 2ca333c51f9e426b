"""Answers the questions of Neovim, which are lists with numbers on its screen."""

import re
from typing import Final

import anyio

from tests.support.programs.real_editors import LOOK_S, START_S, Neovim

QUESTION: Final = "Type number and <Enter>"


async def answer_with(editor: Neovim, number: str) -> None:
    """Wait for the next question, and type the number of an answer."""
    _ = await _asked(editor)
    await editor.keys(f"{number}<CR>")


async def choose(editor: Neovim, title: str) -> None:
    """Wait for the next question, and choose what has these words in it."""
    shown = await _asked(editor)
    found = re.findall(rf"(\d+)[:.] [^\r\n]*{re.escape(title)}", shown)
    assert found, shown
    await editor.keys(f"{found[-1]}<CR>")


async def _asked(editor: Neovim) -> str:
    """Wait for the next question, and give all that was shown so far."""
    with anyio.fail_after(START_S):
        while _screen(editor).count(QUESTION) <= editor.answered:  # noqa: ASYNC110 - a screen tells nobody
            await anyio.sleep(LOOK_S)
    # Some draw the question twice.
    await anyio.sleep(LOOK_S)
    shown = _screen(editor)
    editor.answered = shown.count(QUESTION)
    return shown


def _screen(editor: Neovim) -> str:
    return (editor.home / "log").read_text("utf-8", "replace")
