"""The file tools on a document with unsaved text: they see and change the editor's text, and the disk stays as it is."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core.kernel import JsonValue
from agent_core.tools.runner import ToolOutcome
from agent_core.workspace import Workspace
from agent_core.workspace.processes.disk_processes import DiskProcesses
from tests.support.clients.editors import Place, Window, hash_of, settled
from tests.support.lsp.lsp_profiles import EGLOT, HELIX, NEOVIM_0_11, VSCODE, Profile
from tests.tools.conftest import Bench, make_bench, words
from tiller_server.lsp.edits.document_writer import DIRTY
from tiller_server.lsp.overlay.save_barrier import SaveBeforeRun

ON_DISK = "what the disk has\n"
NOT_FOUND = "Could not find the exact text in a.py. The old text must match exactly including all whitespace and newlines."


class Desk:
    """A document of unsaved text, and the tools."""

    def __init__(self, place: Place, bench: Bench) -> None:
        self.place = place
        self._bench = bench

    @classmethod
    def make(
        cls, tmp_path: Path, env: Mapping[str, str], text: str, profile: Profile = VSCODE
    ) -> "Desk":
        place = Place.make(tmp_path, Window(profile), text=ON_DISK, typed=text)
        if not text:
            place.window.desk.change(place.uri, "")
        bench = make_bench(place.root, home=place.root.parent / "home", env=env)
        bench.workspace = Workspace(
            roots=(place.root,),
            files=place.files,
            processes=SaveBeforeRun(DiskProcesses(), place.files),
            env=env,
        )
        return cls(place, bench)

    async def run(self, name: str, **arguments: JsonValue) -> ToolOutcome:
        await settled(self.place.window)
        return await self._bench.run(name, path="a.py", **arguments)

    async def edit(self, old: str, new: str) -> ToolOutcome:
        return await self.run("edit", edits=[{"oldText": old, "newText": new}])

    def is_untouched_on_disk(self) -> bool:
        return self.place.disk == ON_DISK


Open = Callable[..., Desk]
"""Opens the document with a text that is not saved, in the editor of a profile."""


@pytest.fixture
def opened(tmp_path: Path, child_env: dict[str, str]) -> Open:
    return partial(Desk.make, tmp_path, child_env)


def _details(outcome: ToolOutcome) -> Mapping[str, Any]:
    assert isinstance(outcome.result.details, Mapping)
    return outcome.result.details


@pytest.mark.parametrize("profile", [VSCODE, NEOVIM_0_11, HELIX, EGLOT], ids=lambda p: p.name)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(("Hello, world!", "world", "testing", "Hello, testing!"), id="exact"),
        pytest.param(
            ("line one   \nline two\n", "line one\n", "replaced\n", "replaced\nline two\n"),
            id="trailing spaces",
        ),
        pytest.param(
            ("say \u2018hello\u2019\n", "'hello'", "'world'", "say 'world'\n"), id="single quotes"
        ),
        pytest.param(
            ("say \u201cHello\u201d\n", '"Hello"', '"World"', 'say "World"\n'), id="double quotes"
        ),
        pytest.param(("1\u20132 \u2014 3\n", "1-2 - 3", "4", "4\n"), id="dashes"),
        pytest.param(("one\u00a0two\n", "one two", "1 2", "1 2\n"), id="wide spaces"),
        pytest.param(
            (
                "keep\u00a0this \u2019 \nplain ascii   \n",
                "ascii",
                "words",
                "keep\u00a0this \u2019 \nplain words   \n",
            ),
            id="no side effects",
        ),
        pytest.param(
            ("one\r\ntwo\r\nthree\r\n", "one\ntwo\n", "1\n2\n3\n", "1\r\n2\r\n3\r\nthree\r\n"),
            id="crlf",
        ),
        pytest.param(("one\ntwo\n", "one\r\ntwo", "1\r\n2", "1\n2\n"), id="lf"),
        pytest.param(("你好 🌍\n1\n", "1", "🌍2", "你好 🌍\n🌍2\n"), id="beyond the basic plane"),
    ],
)
async def test_an_edit_lands_in_the_unsaved_text(opened: Open, profile, case) -> None:
    before, old, new, after = case
    desk = opened(before, profile)
    outcome = await desk.edit(old, new)
    assert (outcome.status, words(outcome)) == (
        "ok",
        f"Successfully replaced 1 block(s) in a.py. {DIRTY}",
    )
    assert desk.place.text == after
    assert desk.is_untouched_on_disk()
    details = _details(outcome)
    assert (details["source"], details["saved"]) == ("buffer", False)
    assert details["sha256"] == hash_of(after)
    assert details["version"] == desk.place.window.desk.documents[desk.place.uri].version


@pytest.mark.parametrize(
    ("text", "old", "new", "told"),
    [
        pytest.param("Hello, world!", "nonexistent", "x", NOT_FOUND, id="missing"),
        pytest.param(ON_DISK + "more\n", "completely different", "x", NOT_FOUND, id="unlike"),
        pytest.param(
            "foo bar foo baz foo",
            "foo",
            "qux",
            "Found 3 occurrences of the text in a.py. The text must be unique. "
            "Please provide more context to make it unique.",
            id="three times",
        ),
        pytest.param(
            "hello   \nhello",
            "hello",
            "x",
            "Found 2 occurrences of the text in a.py. The text must be unique. "
            "Please provide more context to make it unique.",
            id="alike",
        ),
        pytest.param(
            "foo\nfoo\nfoo\n",
            "foo\nfoo\n",
            "x",
            "Found 2 occurrences of the text in a.py. The text must be unique. "
            "Please provide more context to make it unique.",
            id="overlapping",
        ),
        pytest.param(
            "hello\r\nworld\n---\nhello\nworld\n",
            "hello\nworld",
            "x",
            "Found 2 occurrences of the text in a.py. The text must be unique. "
            "Please provide more context to make it unique.",
            id="other endings",
        ),
        pytest.param("", "", "content", "oldText must not be empty in a.py.", id="empty"),
        pytest.param(
            "hello",
            "hello",
            "hello",
            "No changes made to a.py. The replacement produced identical content.",
            id="the same",
        ),
    ],
)
async def test_an_edit_that_cannot_be_leaves_the_unsaved_text(
    opened: Open, text, old, new, told
) -> None:
    desk = opened(text)
    outcome = await desk.edit(old, new)
    assert (outcome.status, words(outcome)) == ("error", told)
    assert desk.place.text == text
    assert desk.is_untouched_on_disk()
    assert desk.place.window.edits_asked() == []


async def test_edits_at_the_same_time_all_land(opened: Open) -> None:
    text = "".join(f"<{n}>\n" for n in range(3)) + "x\n" * 1_000
    desk = opened(text)
    outcomes: list[ToolOutcome] = []

    async def edit(number: int) -> None:
        outcomes.append(await desk.edit(f"<{number}>", f"[{number}]"))

    await settled(desk.place.window)
    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(edit, number)
    assert [outcome.status for outcome in outcomes] == ["ok"] * 3
    assert desk.place.text == "[0]\n[1]\n[2]\n" + "x\n" * 1_000
    assert desk.is_untouched_on_disk()


@pytest.mark.parametrize(
    ("lines", "arguments", "begins", "ends"),
    [
        pytest.param(3, {}, "line 1\n", "line 3\n", id="whole"),
        pytest.param(100, {"offset": 51}, "line 51\n", "line 100\n", id="offset"),
        pytest.param(
            100,
            {"limit": 10},
            "line 1\n",
            "line 10\n\n[90 more lines in file. Use offset=11 to continue.]",
            id="limit",
        ),
        pytest.param(
            100,
            {"offset": 41, "limit": 20},
            "line 41\n",
            "line 60\n\n[40 more lines in file. Use offset=61 to continue.]",
            id="offset and limit",
        ),
        pytest.param(100, {"offset": 100}, "line 100\n", "line 100\n", id="last line"),
        pytest.param(
            2_500,
            {},
            "line 1\n",
            "line 2000\n\n[Showing lines 1-2000 of 2500. Use offset=2001 to continue.]",
            id="too many lines",
        ),
    ],
)
async def test_a_page_is_cut_out_of_the_unsaved_text(
    opened: Open, lines, arguments, begins, ends
) -> None:
    text = "".join(f"line {n}\n" for n in range(1, lines + 1))
    desk = opened(text)
    outcome = await desk.run("read", **arguments)
    said = words(outcome)
    assert (outcome.status, said[: len(begins)], said[-len(ends) :]) == ("ok", begins, ends)
    details = _details(outcome)
    assert (details["source"], details["dirty"], details["version"]) == ("buffer", True, 2)
    assert (details["sha256"], details["line_count"]) == (hash_of(text), lines)


async def test_an_unsaved_empty_text_is_empty(opened: Open) -> None:
    desk = opened("")
    outcome = await desk.run("read")
    assert (outcome.status, words(outcome)) == ("ok", "[The file is empty.]")


async def test_an_offset_beyond_the_unsaved_text_is_an_error(opened: Open) -> None:
    desk = opened("1\n2\n3\n")
    outcome = await desk.run("read", offset=100)
    assert (outcome.status, words(outcome)) == (
        "error",
        "Offset 100 is beyond end of file (3 lines total)",
    )


@pytest.mark.parametrize("content", ["new", "", "你好 🌍"])
async def test_a_whole_text_goes_into_the_buffer(opened: Open, content: str) -> None:
    desk = opened("typed\n")
    outcome = await desk.run("write", content=content)
    size = len(content.encode())
    assert (outcome.status, words(outcome)) == (
        "ok",
        f"Successfully wrote {size} bytes to a.py\n{DIRTY}",
    )
    assert desk.place.text == content
    assert desk.is_untouched_on_disk()
    assert _details(outcome)["created"] is False
