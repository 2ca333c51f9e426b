"""How many tokens something takes, and when there are too many."""

import json
from pathlib import Path

import pytest

from agent_core.compaction import (
    CompactionPolicy,
    context_tokens,
    estimate_message,
    estimate_messages,
    estimate_text,
    should_compact,
)
from agent_core.kernel import EntryId
from agent_core.messages import (
    BashMessage,
    CompactionSummaryMessage,
    Image,
    Message,
    Text,
    Thinking,
    Usage,
    UserMessage,
)
from agent_core.transcript import AnyEntry, ContextEditEntry
from tests.support.session.entries import (
    AT_MS,
    assistant,
    call,
    chain,
    compaction,
    entry,
    result,
    user,
)

CORPUS = Path(__file__).parent / "corpus"
COUNTS: dict[str, dict[str, int]] = json.loads((CORPUS / "counts.json").read_text("utf-8"))
COUNTED = Usage(input=900, output=60, cache_read=30, cache_write=10)


def test_no_messages_take_no_tokens() -> None:
    assert estimate_messages([]) == 0
    assert context_tokens([]) == 0


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (user(""), 0),
        (user("abcd"), 1),
        (user("abcde"), 2),
        (user("x" * 4000), 1000),
        (UserMessage(content=(Image(mime="image/png", data="x" * 9999),), at_ms=1), 1200),
        (
            UserMessage(content=(Image(mime="image/png", data=""), Text(text="abcd")), at_ms=1),
            1201,
        ),
        (assistant(Thinking(text="x" * 8), "y" * 4), 3),
        (assistant(call("read", {"path": "a.py"})), (4 + 7 + 2 * 8 + 3) // 4),
        (result("x" * 40), 10),
        (BashMessage(command="ls a", output="x" * 9, exit_code=0, at_ms=1), 3),
        (CompactionSummaryMessage(summary="x" * 12, tokens_before=5, at_ms=1), 3),
    ],
    ids=str,
)
def test_four_letters_make_a_token_and_a_picture_1200(message: Message, tokens: int) -> None:
    assert estimate_message(message) == tokens


def test_the_corpus_has_counts_for_every_text() -> None:
    assert sorted(COUNTS) == sorted(path.name for path in CORPUS.glob("*.txt"))


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_a_text_is_estimated_within_a_fifth(name: str) -> None:
    counted = COUNTS[name]["o200k_base"]
    assert abs(estimate_text(_text(name)) - counted) / counted < 0.2


@pytest.mark.parametrize(
    "tokenizer", ["o200k_base", "cl100k_base", "deepseek", "qwen", "anthropic"]
)
def test_chinese_and_english_together_are_estimated_within_a_fifth(tokenizer: str) -> None:
    counted = COUNTS["mixed.txt"][tokenizer]
    assert abs(estimate_text(_text("mixed.txt")) - counted) / counted < 0.2
    whole = sum(counts[tokenizer] for counts in COUNTS.values())
    estimated = sum(estimate_text(_text(name)) for name in COUNTS)
    assert abs(estimated - whole) / whole < 0.2


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("会话", 2),
        ("会话" * 100, 150),
        ("あいう한국어", 5),
        ("привет мир", 5),
        ("\U0001f600" * 4, 4),
        ("\ud800" * 4, 3),
        ("1234", 3),
        ("(){}[]", 3),
        ("a b c d", 1),
        ("\n\n", 2),
    ],
)
def test_every_kind_of_character_has_its_weight(text: str, tokens: int) -> None:
    assert estimate_text(text) == tokens


def test_the_context_is_what_the_provider_counted_and_an_estimate_of_the_rest() -> None:
    path = chain(user("x" * 4000), assistant("a", usage=COUNTED), result("x" * 40), user("y" * 4))
    assert context_tokens(path, overhead=500) == 1000 + 10 + 1


@pytest.mark.parametrize("stop_reason", ["error", "aborted"])
def test_the_count_of_a_failed_answer_is_not_trusted(stop_reason) -> None:
    good = assistant("a", usage=COUNTED)
    failed = assistant("b" * 8, usage=Usage(input=5), stop_reason=stop_reason)
    assert context_tokens(chain(user("x"), good, user("y" * 4), failed)) == 1000 + 1 + 2


def test_without_a_count_everything_is_estimated() -> None:
    path = chain(user("x" * 400), assistant("y" * 400))
    assert context_tokens(path) == 200
    assert context_tokens(path, overhead=50) == 250


def test_a_count_from_before_a_compaction_or_edit_is_not_trusted() -> None:
    said = chain(user("x" * 400), assistant("y" * 400, usage=COUNTED))
    path: list[AnyEntry] = [
        *said,
        compaction("c", parent="e2", first_kept="e2", summary="s" * 40),
    ]
    assert context_tokens(path) == 10 + 100
    edited = [
        *said,
        ContextEditEntry(
            id=EntryId("x"), parent=None, at_ms=AT_MS, target=EntryId("e1"), replacement=None
        ),
    ]
    assert context_tokens(edited) == 100
    assert context_tokens([*edited, entry("n", assistant("z", usage=COUNTED))]) == 1000


def test_an_attempt_left_out_after_the_count_does_not_spoil_it() -> None:
    said = chain(user("x" * 400), assistant("y", usage=COUNTED), user("z" * 40))
    failed = entry("f", assistant("w" * 400, stop_reason="error"), parent="e3")
    left_out = ContextEditEntry(
        id=EntryId("x"), parent=EntryId("f"), at_ms=AT_MS, target=EntryId("f"), replacement=None
    )
    assert context_tokens([*said, failed, left_out]) == 1000 + 10


@pytest.mark.parametrize(
    ("tokens", "window", "enabled", "compacts"),
    [
        (100_000, 128_000, True, False),
        (128_000 - 16_384, 128_000, True, False),
        (128_000 - 16_384 + 1, 128_000, True, True),
        (128_000, 128_000, False, False),
        (3_000, 4_000, True, False),
        (3_001, 4_000, True, True),
        (10**9, 0, True, False),
    ],
)
def test_the_context_is_compacted_when_the_reserve_is_touched(
    tokens: int, window: int, *, enabled: bool, compacts: bool
) -> None:
    settings = CompactionPolicy(enabled=enabled)
    assert should_compact(tokens, context_window=window, settings=settings) is compacts


def test_a_small_window_scales_the_figures_down_to_a_quarter() -> None:
    settings = CompactionPolicy()
    assert settings.scaled(0) == settings.scaled(200_000) == settings
    small = settings.scaled(32_000)
    assert (small.reserve_tokens, small.keep_recent_tokens) == (8_000, 8_000)
    middle = settings.scaled(70_000)
    assert (middle.reserve_tokens, middle.keep_recent_tokens) == (16_384, 17_500)


def _text(name: str) -> str:
    return (CORPUS / name).read_text("utf-8")
