"""The mirror: whatever an editor tells, in whatever encoding, the server has the editor's text."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from tests.support.clients.editors import tell
from tests.support.lsp.lsp_editor import Editor as Desk
from tests.support.lsp.lsp_text import Lines
from tiller_server.lsp.documents.mirror import Mirror, hash_of
from tiller_server.lsp.documents.positions import PositionEncoding

URI = "file:///ws/a%20b.py"
TEXTS = st.text(alphabet=st.sampled_from("ab \n\r\u00e9\u20ac\U0001f600\u2028"), max_size=30)


def opened(text: str = "one\ntwo\n", *, version: int = 1, uri: str = URI) -> Mirror:
    mirror = Mirror()
    item = {"uri": uri, "languageId": "python", "version": version, "text": text}
    tell(mirror, "textDocument/didOpen", {"textDocument": item})
    return mirror


def change(mirror: Mirror, *changes: dict, version: int = 2, uri: str = URI) -> None:
    identifier = {"uri": uri, "version": version}
    params = {"textDocument": identifier, "contentChanges": list(changes)}
    tell(mirror, "textDocument/didChange", params)


def at(line: int, start: int, end: int, text: str) -> dict:
    return {
        "range": {
            "start": {"line": line, "character": start},
            "end": {"line": line, "character": end},
        },
        "text": text,
    }


def test_an_open_document_is_what_the_editor_sent() -> None:
    document = opened().get(URI)
    assert document is not None
    assert (document.path, document.language, document.text, document.version) == (
        Path("/ws/a b.py"),
        "python",
        "one\ntwo\n",
        1,
    )
    assert document.sha256 == hash_of("one\ntwo\n")


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///ws/%E2%82%AC.py", Path("/ws/€.py")),
        ("file://localhost/ws/a.py", Path("/ws/a.py")),
        ("untitled:Untitled-1", None),
        ("vscode-remote://host/ws/a.py", None),
        ("file://[bad/a.py", None),
        ("file:///a%00b", None),
        ("", None),
    ],
)
def test_only_a_file_has_a_path(uri: str, path: Path | None) -> None:
    document = opened(uri=uri).get(uri)
    assert document is not None
    assert document.path == path


def test_changes_are_followed_one_after_the_other() -> None:
    mirror = opened()
    change(
        mirror,
        at(0, 0, 3, "1"),
        at(0, 1, 1, "!"),
        at(1, 0, 3, ""),
        {"text": "all new"},
        at(0, 0, 3, "ALL"),
    )
    document = mirror.get(URI)
    assert document is not None
    assert (document.text, document.version) == ("ALL new", 2)


def test_opening_again_begins_a_new_epoch_with_the_same_version() -> None:
    mirror = opened(version=0)
    first = mirror.get(URI)
    item = {"uri": URI, "languageId": "python", "version": 0, "text": "reloaded\n"}
    tell(mirror, "textDocument/didClose", {"textDocument": {"uri": URI}})
    tell(mirror, "textDocument/didOpen", {"textDocument": item})
    second = mirror.get(URI)
    assert first is not None
    assert second is not None
    assert (first.version, second.version, second.text) == (0, 0, "reloaded\n")
    assert second.epoch > first.epoch
    assert second.revision > first.revision


def test_odd_notifications_are_survived() -> None:
    mirror = opened(version=7)
    change(mirror, {"text": "x"}, uri="file:///ws/other.py")
    tell(mirror, "textDocument/didSave", {"textDocument": {"uri": "file:///ws/other.py"}})
    tell(mirror, "textDocument/didClose", {"textDocument": {"uri": "file:///ws/other.py"}})
    change(mirror, at(90, 4, 2, "end"), version=3)
    document = mirror.get(URI)
    assert document is not None
    assert (document.text, document.version, len(mirror.documents())) == ("one\ntwo\nend", 3, 1)
    mirror.use_encoding("utf-7")
    assert mirror.encoding == "utf-16"


def test_a_save_that_brings_the_text_repairs_what_drifted() -> None:
    mirror = opened()
    tell(mirror, "textDocument/didSave", {"textDocument": {"uri": URI}, "text": "one\ntrue\n"})
    document = mirror.get(URI)
    assert document is not None
    assert document.text == "one\ntrue\n"


def test_halves_of_a_character_that_come_apart_are_joined() -> None:
    mirror = opened("")
    change(mirror, at(0, 0, 0, "\ud83d"), at(0, 1, 1, "\ude00"))
    document = mirror.get(URI)
    assert document is not None
    assert document.text == "\U0001f600"
    change(mirror, at(0, 2, 2, "\ud83d"), version=3)
    document = mirror.get(URI)
    assert document is not None
    assert (document.text, len(document.sha256)) == ("\U0001f600\ud83d", 64)


@given(
    TEXTS,
    st.sampled_from(["utf-8", "utf-16", "utf-32"]),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), TEXTS), max_size=6),
    st.sampled_from(["together", "one by one"]),
)
def test_the_mirror_has_the_editors_text_after_any_changes(
    text: str, encoding: PositionEncoding, changes: list[tuple[int, int, str]], how: str
) -> None:
    mirror = Mirror()
    mirror.use_encoding(encoding)
    desk = Desk(lambda method, params: tell(mirror, method, params))
    desk.encoding = encoding
    desk.open(URI, text)
    staged: list[dict] = []
    for start, end, new in changes:
        lines = Lines(desk.documents[URI].text, encoding)
        size = len(lines.text)
        low, high = sorted((min(start, size), min(end, size)))
        found = desk.stage(URI, [{"range": lines.range(low, high), "newText": new}])
        if how == "together":
            staged += found
        else:
            desk.publish(URI, found)
    if staged:
        desk.publish(URI, staged)
    document = mirror.get(URI)
    assert document is not None
    assert document.text == desk.documents[URI].text
    assert document.sha256 == desk.documents[URI].sha256


def test_thousands_of_changes_at_once_are_taken_in_quickly() -> None:
    mirror = opened("name = name\n" * 100_000)
    change(mirror, *(at(line, 0, 4, "other") for line in reversed(range(0, 100_000, 4))))
    document = mirror.get(URI)
    assert document is not None
    assert document.text == ("other = name\n" + "name = name\n" * 3) * 25_000


async def test_a_change_can_be_waited_for() -> None:
    mirror = opened()
    before = mirror.get(URI)
    assert before is not None
    asyncio.get_running_loop().call_soon(lambda: change(mirror, {"text": "new"}))
    after = await mirror.changed(URI, after=before.revision, timeout_s=5)
    assert after is not None
    assert after.text == "new"
    same = await mirror.changed(URI, after=after.revision, timeout_s=0.01)
    assert same is after
    close = {"textDocument": {"uri": URI}}
    asyncio.get_running_loop().call_soon(lambda: tell(mirror, "textDocument/didClose", close))
    assert await mirror.changed(URI, after=after.revision, timeout_s=5) is None


def test_no_state_of_a_watched_document_is_missed() -> None:
    mirror = opened()
    seen: list[str | None] = []
    with mirror.watch(URI, lambda document: seen.append(document and document.text)):
        change(mirror, {"text": "a"})
        change(mirror, {"text": "b"})
        tell(mirror, "textDocument/didClose", {"textDocument": {"uri": URI}})
    item = {"uri": URI, "languageId": "python", "version": 0, "text": "c"}
    tell(mirror, "textDocument/didOpen", {"textDocument": item})
    assert seen == ["a", "b", None]
