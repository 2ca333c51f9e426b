"""The last line that looks like a compaction is found in blocks of any size."""

import pytest

from agent_core.storage.adapters.recovery import replaced_until

TIGHT = b'{"type":"compaction"}'
SPACED = b'{"type": "compaction"}'
QUOTED = b'{"name":"compaction"}'
ESCAPED = rb'{"text":"\"type\":\"compaction\""}'


@pytest.mark.parametrize("block_bytes", [1, 2, 7, 21, 22, 30, 31, 64, 1_000])
@pytest.mark.parametrize(
    ("before", "last", "behind"),
    [
        (b"", TIGHT, b""),
        (b"x" * 30, TIGHT, b"\n"),
        (b"x" * 60, SPACED, b"\n" + QUOTED * 4),
        (TIGHT + b"\n" + SPACED + b"\n", TIGHT, ESCAPED),
        (SPACED, SPACED, b"y" * 100),
    ],
    ids=["alone", "tight", "spaced, then other words", "the last of three", "far from the end"],
)
def test_the_last_compaction_is_found_wherever_blocks_end(
    before: bytes, last: bytes, behind: bytes, block_bytes: int
) -> None:
    content = before + last + behind
    blocks = [content[at : at + block_bytes] for at in range(0, len(content), block_bytes)]
    place = replaced_until(blocks)
    assert len(before) < place <= len(before) + len(last)


@pytest.mark.parametrize("content", [b"", QUOTED, ESCAPED, b'"compaction"'], ids=repr)
def test_where_there_is_none_nothing_is_replaced(content: bytes) -> None:
    assert replaced_until([content[:9], content[9:]]) == 0
