"""Whatever the text and the edits are: what is not replaced keeps its bytes, and the patch tells the truth."""

import re
from itertools import pairwise

from hypothesis import assume, given, settings, strategies as st

from agent_core.kernel.errors import ToolError
from agent_core.tools.builtin.edit.match import (
    EditedText,
    Endings,
    FuzzyText,
    Replacement,
    apply_edits,
    fuzzy,
)
from agent_core.tools.builtin.edit.tool import diff_of
from agent_core.workspace.files.text import DecodedText, decode_text, encode_text
from tests.support.harness.sizes import at_size

PIECES = [
    *"abxyz'- \t",
    "ab",
    "  ",
    *"\u2019\u2014\u00a0éﬁß你🌍\u1100\u1161\u200d\x1c\x85",
    "e\u0301",
]
ENDS = ["\n", "\n", "\n"]
# Lone CRs stand alone: beside a LF that stays, no byte of the text tells one line end from two.
ENDINGS = st.sampled_from(["\n", "\r\n", "\r", "mixed"])
PLAIN = st.lists(st.sampled_from([*PIECES, *ENDS]), max_size=40).map("".join)
MIXED = st.lists(st.sampled_from([*PIECES, *ENDS, "\r\n", "\r\n"]), max_size=40).map("".join)
MANY = settings(max_examples=at_size(ci=300, campaign=20_000))


@st.composite
def texts(draw: st.DrawFn) -> str:
    ending = draw(ENDINGS)
    return draw(MIXED) if ending == "mixed" else draw(PLAIN).replace("\n", ending)


def _lf(text: str) -> str:
    return re.sub("\r\n|\r", "\n", text)


def _borders(text: str) -> list[int]:
    """Where each character of the LF text begins in the text: the plain way, for comparison."""
    return [*(found.start() for found in re.finditer("\r\n|[\\s\\S]", text)), len(text)]


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, list[tuple[int, int]], list[str]]:
    """A text and disjoint ranges of its LF form with what to put there."""
    text = draw(texts())
    size = len(_lf(text))
    assume(size)
    cuts = sorted(draw(st.sets(st.integers(0, size), min_size=2, max_size=6)))
    ranges = list(pairwise(cuts))[:: draw(st.integers(1, 2))]
    return text, ranges, [draw(texts()) for _ in ranges]


@MANY
@given(cases())
def test_bytes_outside_of_an_edit_never_change(case) -> None:
    text, ranges, news = case
    lf, borders = _lf(text), _borders(text)
    edits = [Replacement(old=lf[a:b], new=new) for (a, b), new in zip(ranges, news, strict=True)]
    edited = _applied(text, edits)
    if edited is None:
        return
    rest = edited.text
    done = 0
    for (a, b), new in zip(ranges, news, strict=True):
        kept = text[borders[done] : borders[a]]
        assert rest.startswith(kept)
        rest = rest[len(kept) :]
        put = re.match(re.escape(_lf(new)).replace("\\\n", "(?:\r\n|\r|\n)"), rest)
        assert put, (rest, new)
        rest = rest[put.end() :]
        done = b
    assert rest == text[borders[done] :]


@MANY
@given(cases())
def test_the_patch_makes_the_new_text_of_the_old(case) -> None:
    text, ranges, news = case
    lf = _lf(text)
    edits = [Replacement(old=lf[a:b], new=new) for (a, b), new in zip(ranges, news, strict=True)]
    edited = _applied(text, edits)
    if edited is None:
        return
    after = _composed(edited)
    diff = diff_of(edited.before_lf, edited.spans, path="a.txt")
    assert _patched(edited.before_lf, diff.patch) == after
    signs = [row[0] for row in _split(diff.patch)[2:] if not row.startswith("@@")]
    assert (diff.additions, diff.deletions) == (signs.count("+"), signs.count("-"))
    if signs:
        same = diff.first_changed_line - 1
        assert _split(lf)[:same] == _split(after)[:same]


@MANY
@given(cases(), st.sampled_from([("utf-8", False), ("utf-8", True), ("utf-16-le", True)]))
def test_mark_and_encoding_stay_around_an_edit(case, form: tuple[str, bool]) -> None:
    text, ranges, news = case
    encoding, bom = form
    data = encode_text(text, encoding=encoding, bom=bom)
    decoded = decode_text(data)
    assert decoded == DecodedText(text=text, encoding=encoding, bom=bom)
    (a, b), lf, borders = ranges[0], _lf(text), _borders(text)
    edited = _applied(text, [Replacement(old=lf[a:b], new=news[0])])
    if edited is None:
        return
    after = encode_text(edited.text, encoding=encoding, bom=bom)
    head = encode_text(text[: borders[a]], encoding=encoding, bom=bom)
    tail = encode_text(text[borders[b] :], encoding=encoding, bom=False)
    assert data.startswith(head)
    assert after.startswith(head)
    assert after[len(head) :].endswith(tail)


def _applied(text: str, edits: list[Replacement]) -> EditedText | None:
    """Apply edits of texts that are there; None when one is there several times or nothing changes."""
    try:
        return apply_edits(text, edits, path="a.txt")
    except ToolError as error:
        if re.search("occurrences|No changes made", str(error)):
            return None
        raise


def _composed(edited: EditedText) -> str:
    parts, done = [], 0
    for span in edited.spans:
        parts += [edited.before_lf[done : span.start], span.new]
        done = span.end
    return "".join([*parts, edited.before_lf[done:]])


def _split(text: str) -> list[str]:
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _patched(before: str, patch: str) -> str:
    """Apply a unified diff, strictly."""
    old, new, at = _split(before), [], 0
    rows = _split(patch)[2:]
    for index, row in enumerate(rows):
        if found := re.match(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@\n$", row):
            begin = int(found[1]) - (found[2] != "0")
            new += old[at:begin]
            at = begin
            assert int(found[3]) - (found[4] != "0") == len(new)
            continue
        if row.startswith("\\"):
            continue
        bare = index + 1 < len(rows) and rows[index + 1].startswith("\\")
        line = row[1:].removesuffix("\n") if bare else row[1:]
        if row[0] in " -":
            assert old[at] == line
            at += 1
        if row[0] in " +":
            new.append(line)
    return "".join(new + old[at:])


@MANY
@given(texts(), st.data())
def test_what_is_found_as_remembered_is_what_was_meant(text: str, data: st.DataObject) -> None:
    lf = _lf(text)
    remembered = FuzzyText(lf)
    assert remembered.folded == fuzzy(lf)
    a, b = sorted(data.draw(st.tuples(*[st.integers(0, len(remembered.folded))] * 2)))
    start, end = remembered.original(a), remembered.original(b)
    if start is not None and end is not None and a < b:
        assert fuzzy(lf[start:end]).strip() == remembered.folded[a:b].strip() or (
            # What folds to something else beside its neighbours is left alone by the search.
            fuzzy(lf[start:end]) != remembered.folded[a:b]
        )
        assert 0 <= start <= end <= len(lf)


ASCII = st.lists(st.sampled_from([*"ab}\n\n \t", " \n", "\v\n", "ab\n"]), max_size=24).map("".join)


@MANY
@given(ASCII, st.data())
def test_an_ascii_text_is_searched_as_if_it_were_folded(text: str, data: st.DataObject) -> None:
    folded = fuzzy(text)
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(folded))] * 2)))
    wanted = fuzzy(folded[start:end] + data.draw(st.sampled_from(["", "", "a", "\n"])))
    assume(wanted)
    at = [n for n in range(len(folded)) if folded.startswith(wanted, n)]
    found = FuzzyText(text).find(wanted)
    assert found.count == len(at)
    if not at:
        assert found.place is None
        return
    assert found.place is not None
    plain = FuzzyText(text)
    assert found.place == (plain.original(at[0]), plain.original(at[0] + len(wanted)))


@MANY
@given(texts(), st.data())
def test_an_offset_is_turned_back_whatever_was_asked_before(text: str, data: st.DataObject) -> None:
    borders, endings = _borders(text), Endings(text)
    assert endings.lf == _lf(text)
    for offset in data.draw(st.lists(st.integers(0, len(borders) - 1), max_size=6)):
        assert endings.original(offset) == borders[offset]
