"""A session as one HTML file: everything is there to be read, and nothing in it does anything."""

import sys
import time
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

import pytest

from agent_core.kernel import EntryId, SessionId, ToolCallId
from agent_core.messages import (
    BashMessage,
    Cost,
    Image,
    Text,
    Thinking,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from agent_core.transcript import (
    AnyEntry,
    BranchSummaryEntry,
    CustomEntry,
    CustomMessageEntry,
    Header,
    LabelEntry,
    MessageEntry,
    ModelChange,
    SessionNameEntry,
    UnknownEntry,
)
from agent_core.transcript.export.html_document import html
from tests.support.hostile.hostile_texts import HOSTILE
from tests.support.hostile.html_safety import Page, read_page
from tests.support.session.entries import (
    AT_MS,
    assistant,
    call,
    chain,
    compaction,
    entry,
    header,
    result,
    user,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def label(entry_id: str, target: str, text: str | None, *, parent: str) -> LabelEntry:
    return LabelEntry(
        id=EntryId(entry_id),
        parent=EntryId(parent),
        at_ms=AT_MS,
        target=EntryId(target),
        label=text,
    )


def page_of(
    entries: Sequence[AnyEntry], leaf: str | None = None, *, head: Header | None = None
) -> Page:
    end = leaf or (entries[-1].id if entries else None)
    document = html(head or header(), entries, None if end is None else EntryId(end))
    page = read_page(document)
    assert page.faults == []
    return page


def session_of(text: str) -> list[AnyEntry]:
    """A session that holds a text wherever a session can hold one."""
    image = Image(mime=text, data=text)
    talk = chain(
        UserMessage(content=(Text(text=text), image), at_ms=AT_MS),
        assistant(
            Thinking(text=text),
            text,
            call(text, {text: text, "nested": [{text: text}], "long": f"{text}\n{text}"}),
            model=text,
            stop_reason="error",
        ),
        ToolResultMessage(
            call_id=ToolCallId(text),
            tool_name=text,
            content=(Text(text=text), image),
            details={text: text},
            is_error=True,
            at_ms=AT_MS,
        ),
        BashMessage(command=text, output=text, exit_code=1, full_output=text, at_ms=AT_MS),
    )
    failed = entry("e9", replace(assistant(text, stop_reason="error"), error=text), parent="e1")
    odd: list[AnyEntry] = [
        compaction("k", parent="e4", first_kept="e2", summary=text),
        BranchSummaryEntry(
            id=EntryId(text), parent=EntryId("k"), at_ms=AT_MS, from_id=text, summary=text
        ),
        CustomMessageEntry(
            id=EntryId("cm"),
            parent=EntryId(text),
            at_ms=AT_MS,
            custom_type=text,
            content=(Text(text=text),),
        ),
        ModelChange(id=EntryId("mc"), parent=EntryId("cm"), at_ms=AT_MS, provider=text, model=text),
        SessionNameEntry(id=EntryId("n"), parent=EntryId("mc"), at_ms=AT_MS, name=text),
        label("l1", "e1", text, parent="n"),
        label("l2", text, text, parent="l1"),
        UnknownEntry(
            id=EntryId("u"), parent=EntryId("l2"), at_ms=AT_MS, raw={"type": text, "x": text}
        ),
    ]
    return [*talk, failed, *odd]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_text_stays_text_wherever_it_stands(text: str) -> None:
    head = replace(header(text), id=SessionId(text), cwd=text, parent_session=text)
    page = page_of(session_of(text), head=head)
    assert page.pictures == []


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("missing", ["markdown_it", "nh3"])
def test_it_stays_text_without_the_libraries_of_the_extra(
    monkeypatch: pytest.MonkeyPatch, missing: str, text: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    page = page_of(session_of(text))
    assert all(link.startswith("#") for link in page.links)


def test_all_hostile_texts_in_one_answer_stay_text() -> None:
    page_of(session_of("\n\n".join(HOSTILE)))
    page_of(session_of("".join(HOSTILE)))


@pytest.mark.parametrize(
    "unit",
    [
        "<script>",
        "[",
        "![",
        "](",
        "> ",
        "*a _b ",
        "`a``b",
        "- ",
        "&amp;",
        "<!--",
        "\\",
        "a\n\n",
        "~~~\n",
    ],
)
def test_a_long_hostile_answer_is_shown_soon(unit: str) -> None:
    text = unit * (60_000 // len(unit))
    began = time.process_time()
    page_of(chain(user("q"), assistant(text)))
    assert time.process_time() - began < 10


def test_five_megabytes_are_shown_whole() -> None:
    text = "<b>words</b> " * 400_000
    page = page_of(chain(user(text), assistant(text), result(text)))
    assert page.text.count("<b>words</b>") == 3 * 400_000


def test_nothing_may_be_fetched_or_run() -> None:
    page = page_of(chain(user("hello")))
    (policy,) = [one["content"] for one in page.metas if "http-equiv" in one]
    digest = b64encode(sha256(page.styles[0].encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    assert {"name": "referrer", "content": "no-referrer"} in page.metas
    assert "url(" not in page.styles[0]
    assert "@import" not in page.styles[0]


def test_an_answer_is_formatted() -> None:
    page = html(
        header(),
        chain(
            user("q"),
            assistant("# Title\n\n- *one*\n- [two](https://x.example)\n\n```py\nx<1\n```"),
        ),
        EntryId("e2"),
    )
    assert "<h1>Title</h1>" in page
    assert '<a href="https://x.example" rel="noopener noreferrer">two</a>' in page
    assert "x&lt;1" in page


def test_a_remote_picture_is_a_link_and_one_of_the_session_is_shown() -> None:
    mine = UserMessage(content=(Image(mime="image/png", data=PIXEL),), at_ms=AT_MS)
    page = page_of(chain(mine, assistant("![pixel](https://x.example/p.png)")))
    assert page.pictures == [f"data:image/png;base64,{PIXEL}"]
    assert "https://x.example/p.png" in page.links


@pytest.mark.parametrize(
    ("mime", "data"),
    [
        ("image/svg+xml", PIXEL),
        ("text/html", PIXEL),
        ("image/png", PIXEL + '" onerror="alert(1)'),
        ("image/png;x", PIXEL),
        ("image/png", ""),
        ("image/png", PIXEL + "\n"),
    ],
)
def test_a_picture_that_is_none_is_only_mentioned(mime: str, data: str) -> None:
    given = UserMessage(content=(Image(mime=mime, data=data),), at_ms=AT_MS)
    page = page_of(chain(given))
    assert page.pictures == []
    assert "that is not shown" in page.text


def long(name: str) -> str:
    """Words whose end is in no preview."""
    return f"{name} {'and so on ' * 20}, end of {name}"


def test_every_branch_is_there_once_and_can_be_reached() -> None:
    names = ("start", "one", "second", "two", "other way", "other one", "deeper way", "anew")
    words = {name: long(name) for name in names}
    talk = chain(
        user(words["start"]),
        assistant(words["one"]),
        user(words["second"]),
        assistant(words["two"]),
    )
    other = chain(user(words["other way"]), assistant(words["other one"]), after="e2", first=10)
    deeper = chain(user(words["deeper way"]), after="e10", first=20)
    anew = chain(user(words["anew"]), first=30)
    page = page_of([*talk, *other, *deeper, *anew], "e4")
    assert [page.text.count(f"end of {name}") for name in names] == [1] * len(names)
    places = [f"branch-{number}" for number in (1, 2, 3, 4)]
    assert [name for name in page.ids if name.startswith("branch-")] == places
    assert {f"#{place}" for place in places} <= set(page.links)
    assert page.text.count("Other ways on: branch 2: other way") == 1
    assert page.text.count("Other ways on: branch 3: other one") == 1


def test_what_follows_the_leaf_is_a_branch_too() -> None:
    talk = chain(user("start"), assistant("answer one"), user("later"), assistant("answer two"))
    page = page_of(talk, "e2")
    assert "Other ways on: branch 2: later" in page.text
    assert page.text.count("answer two") == 1


def test_circles_and_orphans_are_shown_too() -> None:
    circle = [
        entry("a", user("in a circle"), parent="b"),
        entry("b", user("in the same"), parent="a"),
        entry("c", user("its own parent"), parent="c"),
        entry("d", user("an orphan"), parent="gone"),
    ]
    for leaf in ("a", "c", "d", None):
        document = html(header(), circle, None if leaf is None else EntryId(leaf))
        page = read_page(document)
        assert page.faults == []
        for one in ("in a circle", "in the same", "its own parent", "an orphan"):
            assert one in page.text


def test_a_fork_at_every_entry_is_no_matter() -> None:
    trunk = chain(*(user(f"trunk {number}") for number in range(2_000)))
    twigs = [
        entry(f"t{number}", user(f"twig {number}"), parent=f"e{number}")
        for number in range(1, 2_000)
    ]
    page = page_of([*trunk, *twigs], "e2000")
    assert len([name for name in page.ids if name.startswith("branch-")]) == 2_000


def test_labels_title_and_figures_are_shown() -> None:
    usage = Usage(input=1200, output=34, cost=Cost(input=0.01, output=0.0025))
    entries: list[AnyEntry] = [
        *chain(user("start"), assistant("done", usage=usage)),
        label("l1", "e1", "old name", parent="e2"),
        label("l2", "e1", "a good place", parent="l1"),
        label("l3", "e2", "gone", parent="l2"),
        label("l4", "e2", None, parent="l3"),
        SessionNameEntry(id=EntryId("n"), parent=EntryId("l4"), at_ms=AT_MS, name="My  work"),
    ]
    page = page_of(entries)
    assert page.title == "My work"
    assert "a good place" in page.text
    assert "old name" not in page.text
    assert "gone" not in page.text
    assert "1,200" in page.text
    assert "$0.0125" in page.text
    assert "lab/m" in page.text


def test_what_is_not_for_people_is_left_out() -> None:
    entries: list[AnyEntry] = [
        *chain(user("start")),
        CustomEntry(
            id=EntryId("x"), parent=EntryId("e1"), at_ms=AT_MS, custom_type="tiller.run", data="hid"
        ),
        CustomMessageEntry(
            id=EntryId("y"),
            parent=EntryId("x"),
            at_ms=AT_MS,
            custom_type="p",
            content=(Text(text="not displayed"),),
            display=False,
        ),
    ]
    page = page_of(entries)
    assert "hid" not in page.text
    assert "not displayed" not in page.text


def test_an_empty_session_is_a_document_too() -> None:
    page = page_of([])
    assert page.title == "Session without a title"


def test_control_characters_are_shown_as_their_pictures() -> None:
    page = page_of(
        [MessageEntry(id=EntryId("e"), parent=None, at_ms=AT_MS, message=result("\x1b[1m\0"))]
    )
    assert "␛[1m␀" in page.text
