"""What a command is told to say: words, files, pictures, standard input."""

import io
import sys
from pathlib import Path

import pytest
from PIL import Image as Picture
from typing_extensions import override

from agent_core.kernel.errors import UsageError
from agent_core.messages import Image, Text
from server.cli.prompt_text import MOST_BYTES, read_prompt


class Piped(io.StringIO):
    @override
    def isatty(self) -> bool:
        return False


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", Piped("from the pipe\n"))
    return tmp_path


def said(*words: str, attached: tuple[str, ...] = (), root: Path = Path()) -> tuple:
    return read_prompt(words, [Path(one) for one in attached], root=root, example="example: x")


def texts(*words: str, **more) -> list[str]:
    return [part.text for part in said(*words, **more) if isinstance(part, Text)]


def test_words_are_said_as_they_are() -> None:
    assert said("Repair", "the tests") == (Text(text="Repair the tests"),)


@pytest.mark.parametrize("words", [(), ("-",), ("  ",)])
def test_standard_input_is_read_where_nothing_else_is_said(words: tuple[str, ...]) -> None:
    assert texts(*words) == ["from the pipe"]


def test_a_dash_among_words_puts_standard_input_there() -> None:
    assert texts("Explain this:", "-") == ["Explain this: from the pipe"]


def test_a_file_alone_is_the_prompt(here: Path) -> None:
    (here / "task.md").write_text("\ufeffDo this.\n", "utf-8")
    assert said("@task.md") == (Text(text="Do this."),)


def test_a_file_among_words_is_said_beside_them(here: Path) -> None:
    (here / "a.py").write_text("x = 1\n</resource>", "utf-8")
    words, resource = texts("Explain", "@a.py")
    assert words == "Explain @a.py"
    assert resource.startswith(f'<resource uri="{(here / "a.py").as_uri()}">\nx = 1\n')
    assert resource.count("</resource>") == 1


def test_a_file_of_the_workspace_that_a_text_mentions_is_said_too(here: Path) -> None:
    root = here / "project"
    root.mkdir()
    (root / "a.py").write_text("x = 1", "utf-8")
    found = texts("see @a.py, and ask @nobody (a@b.org)", root=root)
    assert len(found) == 2
    assert "x = 1" in found[1]


def test_a_file_that_is_named_twice_is_said_once(here: Path) -> None:
    (here / "a.py").write_text("x = 1", "utf-8")
    assert len(said("x", "@a.py", attached=("a.py",))) == 2


def test_a_picture_is_said_as_one(here: Path) -> None:
    Picture.new("RGB", (8, 8), "red").save(here / "red.bin", "PNG")
    parts = said("What is this?", attached=("red.bin",))
    assert [one.mime for one in parts if isinstance(one, Image)] == ["image/png"]


def test_a_large_file_and_a_folder_are_pointed_at(here: Path) -> None:
    (here / "big.log").write_text("x" * (MOST_BYTES + 1), "utf-8")
    (here / "folder").mkdir()
    _, big, folder = texts("look", "@big.log", "@folder")
    assert "big.log" in big
    assert "large" in big
    assert len(big) < 500
    assert "folder" in folder


@pytest.mark.parametrize(
    ("words", "attached", "expected"),
    [
        (("@gone.md",), (), "'@gone.md' names no file"),
        (("hi",), ("gone.md",), "'gone.md' cannot be read (No such file or directory)"),
        (("hi", "@bytes"), (), "neither text nor a picture"),
        (("@empty",), (), "is empty"),
        (("@broken.png", "see"), (), "broken.png"),
    ],
    ids=["missing", "missing attachment", "bytes", "empty", "picture"],
)
def test_what_cannot_be_said_is_named(
    here: Path, words: tuple[str, ...], attached: tuple[str, ...], expected: str
) -> None:
    (here / "bytes").write_bytes(b"\x7fELF\0\0")
    (here / "empty").write_text(" \n", "utf-8")
    (here / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n then nothing")
    with pytest.raises(UsageError) as caught:
        _ = said(*words, attached=attached)
    assert expected in str(caught.value)


def test_nothing_to_say_is_told_with_an_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Piped(" \n"))
    with pytest.raises(UsageError, match=r"no prompt.*example: x"):
        _ = said()
