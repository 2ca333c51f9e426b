"""Versions that are none, or no count: texts are followed all the same, and edits name what the editor named."""

from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from tests.support.clients.editors import NEW_TEXT, OLD, Place, Window, settled, tell
from tests.support.lsp.lsp_behaviours import RefusesStaleVersions
from tests.support.lsp.lsp_editor import Json
from tests.support.lsp.lsp_profiles import EGLOT, NEOVIM_0_11, PANEL, VSCODE
from tiller_server.lsp.documents.mirror import Document, Mirror
from tiller_server.lsp.jsonrpc.document_params import changed_params, opened_params

URI = "file:///ws/a.py"
LEFT_OUT = object()
VERSIONS = [
    pytest.param(None, None, id="null"),
    pytest.param(LEFT_OUT, None, id="left out"),
    pytest.param(0, 0, id="0"),
    pytest.param(-1, -1, id="negative"),
    pytest.param(2**31 - 1, 2**31 - 1, id="2^31-1"),
    pytest.param(2**31, 2**31, id="2^31"),
    pytest.param(2**53, 2**53, id="2^53"),
    pytest.param(2**70, None, id="2^70"),
    pytest.param(3.0, 3, id="3.0"),
    pytest.param(2.5, None, id="2.5"),
    pytest.param(1e300, None, id="1e300"),
    pytest.param(float("nan"), None, id="nan"),
    pytest.param("3", None, id="words"),
    pytest.param(True, None, id="true"),
    pytest.param({}, None, id="object"),
]


def named(version: Any, **more: str) -> Json:
    document: Json = {"uri": URI, **more}
    return document if version is LEFT_OUT else {**document, "version": version}


def open_(version: Any, text: str = "one\n") -> Mirror:
    mirror = Mirror()
    item = named(version, languageId="python", text=text)
    tell(mirror, "textDocument/didOpen", {"textDocument": item})
    return mirror


def change(mirror: Mirror, version: Any, text: str) -> Document:
    params = {"textDocument": named(version), "contentChanges": [{"text": text}]}
    tell(mirror, "textDocument/didChange", params)
    document = mirror.get(URI)
    assert document is not None
    return document


@pytest.mark.parametrize(("told", "version"), VERSIONS)
def test_a_text_is_followed_whatever_its_version_is(told: Any, version: int | None) -> None:
    opened = open_(told).get(URI)
    assert opened is not None
    assert (opened.text, opened.version) == ("one\n", version)
    changed = change(open_(1), told, "two\n")
    assert (changed.text, changed.version) == ("two\n", version)


@pytest.mark.parametrize("versions", [[5, 5, 5], [5, 3, 1], [5, 2**53, 5], [None, None], [1, None]])
def test_versions_that_do_not_count_up_lose_no_change(versions: list[int | None]) -> None:
    mirror = open_(1)
    before = mirror.get(URI)
    for number, version in enumerate(versions):
        now = change(mirror, version, f"text {number}\n")
        assert before is not None
        assert (now.text, now.version) == (f"text {number}\n", version)
        assert now.revision > before.revision
        before = now


def test_what_is_read_is_taken_only_where_versions_count() -> None:
    mirror = open_(1)
    mirror.take(URI, "read\n", version=3)
    assert change(mirror, 3, "told late\n").text == "read\n"
    assert change(mirror, 4, "told\n").text == "told\n"
    odd = change(mirror, 4, "again\n")
    mirror.take(URI, "read\n", version=4)
    assert mirror.get(URI) is odd
    assert change(mirror, 4, "more\n").text == "more\n"


@pytest.mark.parametrize("odd", [{}, {"textDocument": 5}, {"textDocument": None}])
def test_what_names_no_document_is_left_to_whoever_reads_it(odd: Json) -> None:
    assert opened_params(odd)[0] == odd
    assert changed_params(odd)[0] == {**odd, "contentChanges": []}


class Odd(Window):
    """An editor that gives versions of its own, and looks at those of edits as far as it gives any."""

    def version_of(self, number: int) -> object:
        return number

    @override
    def _later_notify(self, method: str, params: Json) -> None:
        if "version" in params.get("textDocument", {}):
            document = params["textDocument"]
            params = {
                **params,
                "textDocument": {**document, "version": self.version_of(document["version"])},
            }
        super()._later_notify(method, params)

    def asked_for(self) -> list[object]:
        """The versions that edits were for."""
        changes = [one["edit"]["documentChanges"] for one in self.edits_asked()]
        return [one["textDocument"]["version"] for change in changes for one in change]


class GivesNone(Odd):
    @override
    def version_of(self, number: int) -> object:
        return None


class GivesFarOnes(Odd):
    @override
    def version_of(self, number: int) -> object:
        return 2**53 - 10 + number


class GivesNegativeOnes(Odd):
    @override
    def version_of(self, number: int) -> object:
        return number - 10


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (GivesNone, [None, None]),
        (GivesFarOnes, [2**53 - 9, 2**53 - 7]),
        (GivesNegativeOnes, [-9, -7]),
    ],
)
async def test_an_edit_names_the_version_that_the_editor_gave(
    tmp_path: Path, kind: type[Odd], expected: list[object]
) -> None:
    window = kind(VSCODE)
    window.edits = RefusesVersions(window)
    place = Place.make(tmp_path, window)
    written = await place.write()
    assert (place.text, written.version) == (NEW_TEXT, window.version_of(2))
    window.desk.change(place.uri, f"typed\n{NEW_TEXT}")
    await settled(window)
    await place.write(f"typed\n{OLD}")
    assert place.text == f"typed\n{OLD}"
    assert window.asked_for() == expected


class RefusesVersions(RefusesStaleVersions):
    """Looks at versions by its own count."""

    def __init__(self, window: Odd) -> None:
        super().__init__(reason=None)
        self._window = window

    @override
    def __call__(self, editor: Any, params: Json, reply: Any) -> None:
        for one in params["edit"]["documentChanges"]:
            document = editor.documents[one["textDocument"]["uri"]]
            version = one["textDocument"]["version"]
            if version not in (None, self._window.version_of(document.version)):
                reply({"applied": False})
                return
        plain = [
            {**one, "textDocument": {**one["textDocument"], "version": None}}
            for one in params["edit"]["documentChanges"]
        ]
        super().__call__(editor, {**params, "edit": {"documentChanges": plain}}, reply)


async def test_a_version_that_the_editor_gave_is_never_left_out(tmp_path: Path) -> None:
    for number, profile in enumerate([VSCODE, NEOVIM_0_11, EGLOT, PANEL]):
        folder = tmp_path / str(number)
        folder.mkdir()
        window = Odd(profile)
        place = Place.make(folder, window)
        await place.write()
        assert window.asked_for() == [1]


async def test_an_editor_without_versions_is_asked_to_save_what_there_is(tmp_path: Path) -> None:
    window = GivesNone(PANEL)
    place = Place.make(tmp_path, window)
    written = await place.write()
    assert (place.text, written.version, written.saved) == (NEW_TEXT, None, True)
    (asked,) = [params for method, params in window.asked if method == "agent/edit/apply"]
    assert asked["pre"][0]["version"] is None
    assert len(asked["pre"][0]["sha256"]) == 64
