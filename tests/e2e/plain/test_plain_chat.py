"""The chat file, from an editor that knows plain LSP: what is written below `## You` and saved is answered there."""

import asyncio
import re

import pytest

from tests.support.clients.chatting import CHAT, assert_once, change, chatting, idle, line, turns
from tests.support.clients.office import soon
from tests.support.clients.server import Ground, calls, says
from tests.support.clients.windows import serving
from tests.support.lsp.lsp_profiles import EGLOT, HELIX, NEOVIM_0_11, VSCODE, Profile

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


@pytest.mark.parametrize(
    "profile", [NEOVIM_0_11, HELIX, EGLOT, VSCODE], ids=["neovim", "helix", "eglot", "vscode"]
)
async def test_words_that_are_saved_are_answered_in_the_file(
    ground: Ground, profile: Profile
) -> None:
    ground.file("a.txt", "one\n")
    ground.provider.script(
        [calls(("read", {"path": "a.txt"}), text="I look."), says("It has *one*.\n\nThat is all.")]
    )
    async with serving(ground) as windows, chatting(windows, profile) as chat:
        await chat.open()
        assert chat.path.read_text("utf-8").endswith("\n## You\n\n")
        chat.write("What is in a.txt?\n")
        await chat.has("> done")
        assert chat.text.partition("-->\n")[2] == (
            "\n## You\n\nWhat is in a.txt?\n\n## Tiller\n\nI look.\n\n> read a.txt\n\n"
            "It has *one*.\n\nThat is all.\n\n"
            f"{line(chat.text, '> done')}\n\n## You\n\n"
        )


async def test_a_save_that_repeats_what_was_sent_sends_nothing(ground: Ground) -> None:
    ground.provider.script([{"text": "Yes.", "delay_s": 0.3}, says("Again.")])
    async with serving(ground) as windows, chatting(windows, NEOVIM_0_11) as chat:
        await chat.open()
        chat.write("go\n")
        for _ in range(3):
            chat.client.editor.save(chat.uri)
        await chat.has("> done")
        chat.client.editor.save(chat.uri)
        # The same words once more, in a section of their own, are meant.
        chat.write("go\n")
        chat.client.editor.save(chat.uri)
        await chat.has("Again.")
        await idle(windows)
        assert turns(ground) == ["go", "go"]
        assert chat.text.count("\n## You\n") == 3


async def test_a_file_with_crlf_keeps_its_line_ends(ground: Ground) -> None:
    ground.provider.script([says("One.\nTwo.")])
    ground.file(CHAT, "# Mine\r\n\r\n## You\r\n\r\n")
    async with serving(ground) as windows, chatting(windows, NEOVIM_0_11) as chat:
        chat.look()
        chat.write("a\r\nb\r\n")
        await chat.has("> done")
        assert "\n" not in chat.text.replace("\r\n", "")
        assert chat.text.startswith("# Mine\r\n\r\n## ")
        assert "## You\r\n\r\na\r\nb\r\n\r\n## Tiller\r\n\r\nOne.\r\nTwo.\r\n" in chat.text
        await idle(windows)
        assert turns(ground) == ["a\nb"]


@pytest.mark.parametrize("profile", [NEOVIM_0_11, EGLOT], ids=["neovim", "eglot"])
async def test_an_answer_grows_while_it_is_given(ground: Ground, profile: Profile) -> None:
    words = "".join(f"word{number} " for number in range(40))
    ground.provider.script([{"text": words, "deltas": 40, "delta_delay_s": 0.1}])
    async with serving(ground) as windows, chatting(windows, profile) as chat:
        await chat.open()
        chat.write("tell me\n")
        await chat.has("> done")
        assert_once(chat.text, 40)
        history = [past.text.count("word") for past in chat.client.editor.history[chat.uri]]
        growing = {count for count in history if 0 < count - history[0] < 40}
        assert len(growing) >= 3, history


async def test_who_writes_while_an_answer_comes_loses_nothing(ground: Ground) -> None:
    words = "".join(f"word{number} " for number in range(40))
    ground.provider.script([{"text": words, "deltas": 40, "delta_delay_s": 0.08}, says("Noted.")])
    async with serving(ground) as windows, chatting(windows, NEOVIM_0_11) as chat:
        await chat.open()
        chat.write("tell me\n")
        await chat.has("word3")
        # A line of the answer is changed by its reader, and the next words are typed letter by letter.
        change(chat, "word1 ", "WORD1 ")
        for letter in "and then?":
            end = {"line": chat.text.count("\n"), "character": len(chat.text.splitlines()[-1])}
            if chat.text.endswith("\n"):
                end["character"] = 0
            chat.client.change(chat.uri, [{"range": {"start": end, "end": end}, "newText": letter}])
            await asyncio.sleep(0.05)
        chat.client.editor.save(chat.uri)
        await chat.has("Noted.")
        await idle(windows)
        assert turns(ground) == ["tell me", "and then?"]
        there = chat.text.split()
        assert "WORD1" in there
        assert "word1" not in there
        assert re.findall(r"word\d+", chat.text, re.IGNORECASE) == [
            "word0", "WORD1", *(f"word{number}" for number in range(2, 40))
        ]  # fmt: skip
        assert there.count("then?") == 1


async def test_a_file_that_is_deleted_while_an_answer_comes_is_made_anew(ground: Ground) -> None:
    words = "".join(f"word{number} " for number in range(40))
    ground.provider.script([{"text": words, "deltas": 40, "delta_delay_s": 0.08}])
    async with serving(ground) as windows, chatting(windows, NEOVIM_0_11) as chat:
        await chat.open()
        chat.write("tell me\n")
        await chat.has("word3")
        chat.client.close_document(chat.uri)
        chat.path.unlink()
        await idle(windows)
        await soon(lambda: chat.path.is_file() and "> done" in chat.path.read_text("utf-8"))
        text = chat.path.read_text("utf-8")
        assert "## You\n\ntell me\n\n## Tiller\n\nword0 word1" in text
        assert text.count("word39") == text.count("word7 ") == 1


async def test_what_was_not_saved_is_there_when_the_file_is_opened_again(ground: Ground) -> None:
    words = "".join(f"word{number} " for number in range(30))
    ground.provider.script([{"text": words, "deltas": 30, "delta_delay_s": 0.08}, says("More.")])
    async with serving(ground) as windows, chatting(windows, NEOVIM_0_11) as chat:
        await chat.open()
        chat.write("tell me\n")
        await chat.has("word3")
        chat.client.close_document(chat.uri)
        assert chat.path.read_text("utf-8").endswith("tell me\n")
        chat.look()
        await chat.has("> done")
        assert_once(chat.text, 30)
        await idle(windows)
        assert turns(ground) == ["tell me"]


async def test_an_editor_that_comes_back_in_the_middle_of_a_run_misses_nothing(
    ground: Ground,
) -> None:
    words = "".join(f"word{number} " for number in range(40))
    ground.provider.script([{"text": words, "deltas": 40, "delta_delay_s": 0.08}])
    async with serving(ground) as windows:
        async with chatting(windows, NEOVIM_0_11) as chat:
            await chat.open()
            chat.write("tell me\n")
            await chat.has("word3")
        async with chatting(windows, NEOVIM_0_11) as chat:
            chat.look()
            chat.client.editor.save(chat.uri)
            await chat.has("> done")
            assert_once(chat.text, 40)
            await idle(windows)
        assert turns(ground) == ["tell me"]


async def test_a_server_that_comes_back_completes_the_file_from_the_log(ground: Ground) -> None:
    ground.provider.script([says("First."), says("Second.")])
    async with serving(ground) as windows, chatting(windows, NEOVIM_0_11) as chat:
        await chat.open()
        chat.write("one\n")
        await chat.has("> done")
        chat.client.editor.save(chat.uri)
        chat.write("two\n")
        await chat.has("Second.")
        await idle(windows)
    assert "Second." not in chat.path.read_text("utf-8")
    async with serving(ground) as windows, chatting(windows, NEOVIM_0_11) as chat:
        chat.look()
        chat.client.editor.save(chat.uri)
        await chat.has("Second.")
        await chat.has("> done\n\n## You\n\n")
        assert chat.text.count("First.") == chat.text.count("Second.") == 1
        assert turns(ground) == ["one", "two"]
    chat.path.unlink()
    async with serving(ground) as windows, chatting(windows, HELIX) as chat:
        await chat.open()
        assert chat.text.partition("-->\n")[2] == (
            "\n## You\n\none\n\n## Tiller\n\nFirst.\n\n> done\n\n"
            "## You\n\ntwo\n\n## Tiller\n\nSecond.\n\n> done\n\n## You\n\n"
        )
