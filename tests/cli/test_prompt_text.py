"""What a command is told to say: words, files, pictures, standard input."""

import io
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image as Picture
from typing_extensions import override

from agent_core.kernel.errors import UsageError
from agent_core.messages import File, Image, Text
from tiller_server.cli.run.prompt_input import MOST_BYTES, missing_notes, read_prompt


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


def test_a_pdf_goes_along_with_its_bytes_and_may_be_the_whole_prompt(here: Path) -> None:
    (here / "plan.pdf").write_bytes(b"%PDF-1.7")
    pdf = File(name="plan.pdf", mime="application/pdf", data="JVBERi0xLjc=")
    assert said("Read it.", attached=("plan.pdf",))[1:] == (pdf,)
    sys.stdin = Piped("")
    assert said("@plan.pdf") == (pdf,)


def test_a_dash_among_words_puts_standard_input_there() -> None:
    assert texts("Explain this:", "-") == ["Explain this:\n\nfrom the pipe"]


def test_a_dash_before_words_puts_standard_input_before_them() -> None:
    assert texts("-", "What is it?") == ["from the pipe\n\nWhat is it?"]


@contextmanager
def pipe(
    monkeypatch: pytest.MonkeyPatch, data: bytes, *, is_open: bool = False
) -> Generator[None, None, None]:
    """Make a pipe standard input."""
    ours, theirs = os.pipe()
    with os.fdopen(ours) as reader, os.fdopen(theirs, "wb") as writer:
        writer.write(data)
        if not is_open:
            writer.close()
        monkeypatch.setattr(sys, "stdin", reader)
        yield


def test_a_pipe_beside_words_follows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with pipe(monkeypatch, b"diff  \n\n--git a b\n"):
        assert texts("Explain", "this") == ["Explain this\n\ndiff  \n\n--git a b"]


def test_a_file_on_standard_input_follows_words(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "input").write_text("of a file\n", "utf-8")
    with (here / "input").open(encoding="utf-8") as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert texts("Explain") == ["Explain\n\nof a file"]


def test_a_pipe_beside_a_file_is_said_with_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "task.md").write_text("Do this.", "utf-8")
    with pipe(monkeypatch, b""):
        assert said("@task.md") == (Text(text="Do this."),)
    with pipe(monkeypatch, b"with that"):
        words, resource = texts("@task.md")
    assert words == "@task.md\n\nwith that"
    assert "Do this." in resource


def test_a_pipe_that_stays_empty_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pipe(monkeypatch, b"", is_open=True):
        given = read_prompt(["Explain this"], [], root=Path(), example="x", patience_s=0)
    assert given == (Text(text="Explain this"),)
    assert "standard input had nothing for 0 s and is not used; add -" in capsys.readouterr().err


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


def test_a_folder_of_the_workspace_that_a_text_mentions_is_pointed_at(here: Path) -> None:
    (here / "docs").mkdir()
    _, folder = texts("see @docs, please", root=here)
    assert f"{(here / 'docs').as_uri()};" in folder


def test_a_name_in_a_text_that_looks_like_a_file_and_is_none_is_told(here: Path) -> None:
    (here / "a.py").write_text("x = 1\n", encoding="utf-8")
    text = "see @a.py, @gone.md. Ask @nobody (a@b.org) about @dataclass, @https://a.org/b and @src/gone, @gone.md"
    assert missing_notes([text, "@alone.md"], root=here) == [
        "There is no file 'gone.md'; @gone.md is sent as text.",
        "There is no file 'src/gone'; @src/gone is sent as text.",
    ]


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


def test_a_secret_file_is_said_when_its_name_is_typed_and_never_with_its_folder(here: Path) -> None:
    (here / "keys").mkdir()
    (here / "keys" / ".env").write_text("KEY=of .env\n", encoding="utf-8")
    assert "KEY=of .env" not in "".join(texts("look at", "@keys"))
    assert "KEY=of .env" in "".join(texts("look at", "@keys/.env"))
