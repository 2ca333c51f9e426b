"""Parts of long texts."""

from hypothesis import given, strategies as st

from agent_core.channels.messaging.delivery.text_parts import shortened, text_parts

LIMIT = 1000
LINES = st.lists(st.text(max_size=400), max_size=40).map("\n".join)


@given(text=LINES | st.text(max_size=5000))
def test_the_parts_of_a_text_without_fences_are_the_text(text: str) -> None:
    text = text.replace("```", "").replace("~~~", "")
    if "```" in text or "~~~" in text:
        return
    parts = text_parts(text, limit_bytes=LIMIT)
    assert "".join(parts) == text
    assert all(len(part.encode()) <= LIMIT for part in parts)


@given(text=LINES, rest=st.text(max_size=3000), info=st.sampled_from(["", "py", "sh -x"]))
def test_a_fenced_block_is_closed_and_opened_again_and_nothing_is_lost(
    text: str, rest: str, info: str
) -> None:
    clean, tail = (each.replace("`", "").replace("~", "") for each in (text, rest))
    whole = f"before\n```{info}\n{clean}\n```\n{tail}"
    parts = text_parts(whole, limit_bytes=LIMIT)
    assert all(len(part.encode()) <= LIMIT for part in parts)
    for part in parts:
        assert sum(line.startswith("```") for line in part.split("\n")) % 2 == 0
    assert content("".join(f"{part}\n" for part in parts)) == content(whole)


def content(text: str) -> str:
    """Return a text without fences and line ends."""
    kept = [line for line in text.split("\n") if not line.startswith("```")]
    return "".join(kept)


def test_a_short_text_is_one_part_as_it_is() -> None:
    for text in ("", "a", "```\nopen", "\n\n", "é" * 500):
        assert text_parts(text, limit_bytes=LIMIT) == (text,)


def test_a_fence_in_a_list_and_a_longer_fence_are_fences() -> None:
    block = "\n".join(f"row {number}" for number in range(300))
    for fence in ("````", "~~~", "   ```"):
        parts = text_parts(f"{fence}md\n{block}\n{fence.strip()}\nend", limit_bytes=LIMIT)
        assert len(parts) > 2
        assert all(part.lstrip().startswith(fence.strip()) for part in parts[:-1])


def test_a_cut_is_shown() -> None:
    assert shortened("abcdef", limit=4) == "abc…"
    assert shortened("abcd", limit=4) == "abcd"
