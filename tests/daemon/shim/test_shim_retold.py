"""A document that is told again is, to the character, the one that the daemon's own mirror has."""

import json
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from tests.support.clients.editors import tell
from tiller_server.daemon.shim.message import RelayedMessage, read
from tiller_server.daemon.shim.replayed_document import AT_ONCE, MAX_CHANGES, ReplayedDocument
from tiller_server.lsp.documents.mirror import Mirror

URI = "file:///a.py"
Json = dict[str, Any]

TEXTS = st.text(alphabet="ab\n\r\té𝄞世 ", max_size=30)
PLACES = st.integers(min_value=0, max_value=12)
RANGES = st.builds(
    lambda a, b, c, d: {
        "start": {"line": a, "character": b},
        "end": {"line": c, "character": d},
    },
    *[PLACES] * 4,
)
CHANGES = st.one_of(
    st.builds(lambda place, text: {"range": place, "text": text}, RANGES, TEXTS),
    st.builds(lambda text: {"text": text}, TEXTS),
)


def message(method: str, params: Json) -> RelayedMessage:
    told = read(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())
    assert told is not None
    return told


def opened(text: str, *, version: int | None = 1) -> RelayedMessage:
    item = {"uri": URI, "languageId": "python", "version": version, "text": text}
    return message("textDocument/didOpen", {"textDocument": item})


def changed(version: int | None, *changes: Json) -> RelayedMessage:
    named = {"uri": URI, "version": version}
    return message("textDocument/didChange", {"textDocument": named, "contentChanges": changes})


def back_to_front(new: str) -> Json:
    """Make a change whose range ends before it begins."""
    place = {"start": {"line": 0, "character": 1}, "end": {"line": 0, "character": 0}}
    return {"range": place, "text": new}


def mirrored(bodies: list[bytes], encoding: str) -> tuple[str, int | None]:
    """Give text and version as the daemon has them after these messages."""
    mirror = Mirror()
    mirror.use_encoding(encoding)
    for body in bodies:
        told = json.loads(body)
        tell(mirror, told["method"], told["params"])
    document = mirror.get(URI)
    assert document is not None
    return document.text, document.version


@given(
    text=TEXTS,
    steps=st.lists(st.lists(CHANGES, min_size=1, max_size=3), max_size=12),
    encoding=st.sampled_from(["utf-8", "utf-16", "utf-32"]),
    most=st.integers(min_value=0, max_value=4),
)
@example(text="", steps=[[back_to_front("a"), back_to_front("")]], encoding="utf-8", most=0)
def test_what_is_told_again_is_what_the_mirror_has(
    text: str, steps: list[list[Json]], encoding: str, most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tiller_server.daemon.shim.replayed_document.MAX_CHANGES", most)
        first = opened(text)
        kept, all_bodies = ReplayedDocument(first), [first.body]
        for number, changes in enumerate(steps, start=2):
            change = changed(number, *changes)
            kept.change(change, encoding=encoding)
            all_bodies.append(change.body)
        told = kept.messages()
    assert mirrored(told, encoding) == mirrored(all_bodies, encoding)
    assert len(told) <= most + 1


def test_a_document_that_is_typed_in_for_ever_stays_small() -> None:
    kept = ReplayedDocument(opened("x"))
    place = {"line": 0, "character": 0}
    for version in range(2, MAX_CHANGES * 2):
        change = changed(version, {"range": {"start": place, "end": place}, "text": "y"})
        kept.change(change, encoding="utf-16")
        assert len(kept.messages()) <= MAX_CHANGES + AT_ONCE
    assert mirrored(kept.messages(), "utf-16") == ("y" * (MAX_CHANGES * 2 - 2) + "x", 1999)


def test_a_whole_text_makes_all_before_it_needless() -> None:
    kept = ReplayedDocument(opened("x"))
    for version in range(2, 50):
        kept.change(changed(version, {"text": f"text {version}"}), encoding="utf-16")
    assert len(kept.messages()) == 2
    assert mirrored(kept.messages(), "utf-16") == ("text 49", 49)


def test_a_text_that_is_sent_along_when_it_is_saved_counts() -> None:
    kept = ReplayedDocument(opened("x"))
    kept.change(changed(7, {"text": "drifted"}), encoding="utf-16")
    kept.save("saved")
    assert mirrored(kept.messages(), "utf-16") == ("saved", 7)


@pytest.mark.parametrize("version", [None, 2**53, "4", -1, 7], ids=str)
def test_a_document_is_folded_whatever_its_versions_are(version: Any) -> None:
    place = {"line": 0, "character": 0}
    kept = ReplayedDocument(opened("x", version=version))
    for _ in range(MAX_CHANGES * 2):
        kept.change(
            changed(version, {"range": {"start": place, "end": place}, "text": "y"}),
            encoding="utf-16",
        )
    bodies = kept.messages()
    assert len(bodies) <= MAX_CHANGES + 1
    assert mirrored(bodies, "utf-16") == (
        "y" * 2 * MAX_CHANGES + "x",
        version if isinstance(version, int) else None,
    )


@pytest.mark.parametrize(
    "odd",
    [
        {"text": 5},
        {"text": "a", "range": {"start": {"line": 0}}},
        {"text": "a", "range": {"start": {"line": "0", "character": 0}, "end": {}}},
        "no object",
    ],
    ids=["text", "half a place", "words for numbers", "no object"],
)
def test_what_cannot_be_followed_is_kept_as_it_came(odd: Any) -> None:
    kept = ReplayedDocument(opened("x"))
    told = [changed(2, {"text": "one"}), changed(3, odd), changed(4, {"text": "two"})]
    for change in told:
        kept.change(change, encoding="utf-16")
    assert kept.messages()[1:] == [change.body for change in told]
