"""How many tokens something takes, and when there are too many."""

import pytest

from agent_core.compaction import (
    CompactionSettings,
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
from tests.support.entries import AT_MS, assistant, call, chain, compaction, entry, result, user

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
        (assistant(call("read", {"path": "a.py"})), (4 + len('{"path":"a.py"}') + 3) // 4),
        (result("x" * 40), 10),
        (BashMessage(command="ls -", output="x" * 8, exit_code=0, at_ms=1), 3),
        (CompactionSummaryMessage(summary="x" * 12, tokens_before=5, at_ms=1), 3),
    ],
    ids=str,
)
def test_four_characters_make_a_token_and_a_picture_1200(message: Message, tokens: int) -> None:
    assert estimate_message(message) == tokens


def test_chinese_and_english_together_are_estimated_within_a_fifth() -> None:
    # Two tokens for each of 4 Chinese characters, 1.3 for each of 2 English words.
    expected = 4 * 2 + 2 * 1.3
    assert abs(estimate_text("Hello 你好 World 世界") - expected) / expected < 0.2


def test_characters_beyond_the_basic_plane_count_twice() -> None:
    assert estimate_text("\U0001f600" * 4) == 2


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
    settings = CompactionSettings(enabled=enabled)
    assert should_compact(tokens, context_window=window, settings=settings) is compacts


def test_a_small_window_scales_the_figures_down_to_a_quarter() -> None:
    settings = CompactionSettings()
    assert settings.scaled(0) == settings.scaled(200_000) == settings
    small = settings.scaled(32_000)
    assert (small.reserve_tokens, small.keep_recent_tokens) == (8_000, 8_000)
    middle = settings.scaled(70_000)
    assert (middle.reserve_tokens, middle.keep_recent_tokens) == (16_384, 17_500)
