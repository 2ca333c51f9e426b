"""How far a chat file has what was said: after a save that was not made, a restart, and a file that somebody cleared."""

import pytest

from tiller_server.lsp.plain.chat import projection
from tiller_server.lsp.plain.chat.format import ChatPiece, grown, mark_of, new_file
from tiller_server.lsp.plain.chat.projection import EARLIER, ChatProjection

NEW = new_file()


def you(words: str, *, from_file: bool = False) -> ChatPiece:
    return ChatPiece(kind="you", text=words, from_file=from_file)


def block(text: str) -> ChatPiece:
    return ChatPiece(kind="block", text=text)


def more(text: str) -> ChatPiece:
    return ChatPiece(kind="more", text=text)


def line(text: str) -> ChatPiece:
    return ChatPiece(kind="line", text=f"> {text}")


LOG = (
    you("one"),
    block("First.\n\nAnd more."),
    line("done"),
    you("two"),
    block("Second."),
    line("done"),
)
WHOLE = grown(NEW, LOG, tail="")


def wrote(page: ChatProjection, text: str) -> str:
    """Write what waits into a file, and give the file."""
    pieces = page.waiting()
    text = grown(text, pieces, tail="")
    page.put(len(pieces), mark_of(text))
    return text


def test_bits_of_an_answer_that_wait_are_one_piece() -> None:
    page = ChatProjection()
    page.add(block("a"), more("b"), more(" c"), line("x"), more("d"))
    assert page.waiting() == (block("ab c"), line("x"), more("d"))


def test_what_is_being_written_is_not_changed_any_more() -> None:
    page = ChatProjection()
    page.add(block("a"))
    assert page.waiting() == (block("a"),)
    page.add(more("b"))
    page.put(1, "a")
    assert page.waiting() == (more("b"),)


def test_without_a_save_all_since_the_last_one_comes_again() -> None:
    page = ChatProjection()
    page.add(block("a"))
    _ = wrote(page, NEW)
    page.keep()
    page.add(block("b"))
    _ = wrote(page, NEW)
    assert page.is_unsaved
    assert not page.lose("something else")
    assert page.waiting() == (block("b"),)


def test_an_editor_that_read_the_disk_too_early_lacks_what_was_written_since() -> None:
    page = ChatProjection()
    page.add(block("alpha"))
    early = wrote(page, NEW)
    page.keep()
    page.add(block("beta"))
    _ = wrote(page, early)
    page.keep()
    assert page.knows(mark_of(early))
    assert page.lose(mark_of(early))
    assert page.waiting() == (block("beta"),)
    assert not page.knows("something else")


def test_an_editor_that_shows_an_old_text_and_then_reads_the_disk_lacks_nothing() -> None:
    page = ChatProjection()
    page.add(block("alpha"))
    early = wrote(page, NEW)
    page.keep()
    page.add(block("beta"))
    late = wrote(page, early)
    page.keep()
    assert page.lose(mark_of(early))
    assert page.mark == mark_of(early)
    assert page.waiting() == (block("beta"),)
    # The buffer was reverted to what the disk has.
    assert page.knows(mark_of(late))
    assert page.lose(mark_of(late))
    assert page.waiting() == ()


def test_a_state_of_the_file_is_known_again() -> None:
    page = ChatProjection()
    texts = [NEW]
    for name in ("alpha", "beta", "gamma"):
        page.add(block(name))
        texts.append(wrote(page, texts[-1]))
    assert page.lose(mark_of(texts[2].replace("\n", "\r\n") + "a draft"))
    assert page.waiting() == (block("gamma"),)
    assert not page.is_unsaved


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        pytest.param(WHOLE, (), id="all is there"),
        pytest.param(WHOLE + "draft", (), id="and a draft"),
        pytest.param(WHOLE.replace("First.", "changed"), (), id="somebody changed a line"),
        pytest.param(WHOLE.replace("\n", "\r\n"), (), id="CRLF"),
        pytest.param(NEW, (), id="it was begun anew"),
        pytest.param(NEW + "something of the user's", (), id="other words"),
        pytest.param(grown(NEW, LOG[:3], tail=""), LOG[3:], id="a turn is missing"),
        pytest.param(grown(NEW, LOG[:3], tail="") + "draft", LOG[3:], id="and there is a draft"),
        pytest.param(
            grown(NEW, LOG[:3], tail="") + "two\n",
            (you("two", from_file=True), *LOG[4:]),
            id="the words were saved, their answer was not",
        ),
        pytest.param(
            NEW + "one\n\n## Tiller\n\nFirst.\n\n## You\n\n",
            (block("And more."), *LOG[2:]),
            id="half an answer",
        ),
    ],
)
def test_what_a_file_lacks_that_an_earlier_process_wrote(
    text: str, rest: tuple[ChatPiece, ...]
) -> None:
    page = ChatProjection(LOG)
    page.add(block("since"))
    page.find(text)
    assert page.waiting() == (*rest, block("since"))


def test_what_is_missing_comes_into_the_file_once() -> None:
    text = grown(NEW, LOG[:3], tail="") + "two\n"
    page = ChatProjection(LOG)
    page.find(text)
    assert wrote(page, text) == WHOLE


def test_a_file_that_is_gone_gets_all_of_it() -> None:
    page = ChatProjection(LOG)
    page.find(WHOLE)
    page.start_anew()
    assert page.waiting() == LOG


def test_of_a_draft_what_was_sent_is_left_out_until_it_is_answered() -> None:
    page = ChatProjection()
    page.add(you("a", from_file=True), block("b"))
    assert page.unsent("a") == ""
    assert page.unsent("a\n\nc") == "c"
    assert page.unsent("other") == "other"
    _ = wrote(page, NEW + "a")
    assert page.unsent("a") == "a"


def test_of_a_long_session_the_newest_turns_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "MOST_CHARS", 1_000)
    turns = [piece for n in range(50) for piece in (you(f"turn {n}"), block("x" * 90))]
    page = ChatProjection(turns)
    first, second, *_, last = page.waiting()
    assert (first, second.kind, last) == (EARLIER, "you", turns[-1])
    assert sum(len(one.text) for one in page.waiting()) < 1_000
    for n in range(50, 100):
        page.add(you(f"turn {n}"), block("x" * 90))
        page.put(len(page.waiting()), f"mark {n}")
        assert not page.waiting()
        page.keep()
    page.start_anew()
    first, second, *_, last = page.waiting()
    assert (first, second.kind, last.text) == (EARLIER, "you", "x" * 90)
    assert sum(len(one.text) for one in page.waiting()) < 2_000
