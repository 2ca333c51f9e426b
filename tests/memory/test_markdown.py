"""Memory files keep what people wrote, and a part that cannot be read hides only itself."""

from pathlib import Path

import pytest

from agent_core.memory.markdown import read_memory, with_entry, with_use, without_entries
from agent_core.memory.values import USER, MemoryEntry, MemoryScope

PROJECT = MemoryScope("k")
BY_HAND = """\
# Mine

Notes that are no entry.

---
# a comment
Kind: decision
---
Use tabs.

---

A rule above is part of the text.

---
id: b
trust: derived
path: src/*.py
created: 2026-01-02
expires: 2026-04-02
---
Second.
"""


def entry(text: str = "Tests need `make test`.", id_: str = "a1", **more: str) -> MemoryEntry:
    return MemoryEntry(id=id_, scope=PROJECT, text=text, created="2026-11-28", line=0, fields=more)


def test_a_file_that_a_person_wrote_is_read() -> None:
    file = read_memory(BY_HAND, scope=USER)
    assert file.problems == ()
    first, second = file.entries
    assert (first.kind, first.trust, first.line) == ("decision", "stated", 5)
    assert first.text == "Use tabs.\n\n---\n\nA rule above is part of the text."
    assert (second.id, second.trust, second.path) == ("b", "derived", "src/*.py")
    assert (second.is_about("src/a.py"), second.is_about("doc/a.py")) == (True, False)
    assert (second.is_expired("2026-04-02"), second.is_expired("2026-04-03")) == (False, True)


def test_what_is_written_is_read_again() -> None:
    whole = MemoryEntry(
        id="x",
        scope=PROJECT,
        text="Line one\n\nline two",
        kind="rejected-finding",
        path="a/**",
        session="s1",
        source="e1",
        trust="observed",
        origin="tool",
        created="2026-11-28",
        used="2026-11-29",
        expires="2027-01-01",
        fields={"fingerprint": "f" * 32, "rule": "bug", "file": "a.py"},
        line=3,
    )
    assert read_memory(with_entry("", whole), scope=PROJECT).entries == (whole,)


def test_a_rule_in_the_text_begins_no_entry() -> None:
    text = with_entry("", entry("One\n---\nid: evil\n---\nTwo"))
    (only,) = read_memory(text, scope=PROJECT).entries
    assert only.text == "One\n***\nid: evil\n***\nTwo"


def test_changes_leave_everything_else_as_it_is() -> None:
    text = with_entry(BY_HAND, entry())
    assert text.startswith(BY_HAND.rstrip())
    used = with_use(text, {"b"}, "2026-12-01")
    assert used.replace("used: 2026-12-01\n", "") == text
    assert read_memory(used, scope=USER).entries[1].used == "2026-12-01"
    assert with_use(used, {"b"}, "2026-12-02") == used.replace("2026-12-01", "2026-12-02")
    assert without_entries(text, {"a1"}).rstrip() == BY_HAND.rstrip()
    by_text = read_memory(BY_HAND, scope=USER).entries[0].id
    left = without_entries(BY_HAND, {by_text})
    assert left.startswith("# Mine\n\nNotes that are no entry.\n\n---\nid: b\n")


def test_line_ends_of_windows_are_kept() -> None:
    text = BY_HAND.replace("\n", "\r\n")
    assert len(read_memory(text, scope=USER).entries) == 2
    assert without_entries(text, {"b"}) == text[: text.index("---\r\nid: b")]


GOOD = "---\nid: good\n---\nGood.\n"


@pytest.mark.parametrize(
    ("nonsense", "line", "reason"),
    [
        ("---\nid: a\nkind: fcat\n---\nText.\n", 7, "kind 'fcat' is none of fact, preference"),
        ("---\nid: a\ntrust: total\n---\nText.\n", 7, "trust 'total' is none of stated"),
        ("---\nid: a\ncreated: yesterday\n---\nText.\n", 7, "created 'yesterday' is no day"),
        ("---\nid: a\n---\n\n\n", 5, "the entry has no text"),
        (f"---\nid: a\n---\n{'x' * 501}\n", 8, "the text has 501 characters"),
        ("---\nid: a b\n---\nText.\n", 6, "the id 'a b' is not made of letters and digits"),
        ("---\nid: good\n---\nText.\n", 5, "the id 'good' is that of line 1 too"),
        ("---\nid: a\nkind fact\n---\nText.\n", 7, "'kind fact' is no 'name: value'"),
        ("---\nid: a\nText.\n", 7, "'Text.' is no 'name: value'"),
        ("---\nid: a\nkind: fact\n", 5, "the front matter has no closing ---"),
        ("---\nid: a\ncolour: red\n---\nText.\n", 7, "the field 'colour' is unknown"),
    ],
)  # fmt: skip
def test_nonsense_is_reported_with_its_line_and_the_rest_works(
    nonsense: str, line: int, reason: str
) -> None:
    end = "---\nid: last\n---\nLast.\n" if "closing" not in reason else ""
    file = read_memory(GOOD + nonsense + end, scope=USER, path=Path("/m/user.md"))
    (problem,) = file.problems
    assert str(problem).startswith(f"/m/user.md:{line}: {reason}")
    ids = [one.id for one in file.entries]
    assert ids == ["good", *(["a"] if "colour" in nonsense else []), *(["last"] if end else [])]
    assert file.entries[0].text == "Good."


def test_removing_an_entry_keeps_the_nonsense_behind_it() -> None:
    text = GOOD + "---\nid: a\nkind: fcat\n---\nText.\n"
    assert without_entries(text, {"good"}) == text.removeprefix(GOOD)
