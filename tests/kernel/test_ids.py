"""Ids: unique, and in the order of time where they say so."""

import re
import uuid
from collections.abc import Container

import pytest
from hypothesis import given, strategies as st
from typing_extensions import override

from agent_core.kernel import new_entry_id, uuid7
from agent_core.kernel.ids import ENTRY_ID_DRAWS

AT_MS = 1_795_000_000_123
TIMES = st.integers(0, 2**48 - 1)


class Everything(Container[object]):
    """Holds every short id, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    @override
    def __contains__(self, drawn: object) -> bool:
        self.asked += 1
        return True


def test_an_id_is_a_uuid_of_version_7_with_its_time() -> None:
    made = uuid.UUID(uuid7(AT_MS))
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert made.int >> 80 == AT_MS
    assert str(made) == str(made).lower()


@given(earlier=TIMES, later=TIMES)
def test_ids_sort_by_their_time(earlier: int, later: int) -> None:
    if earlier > later:
        earlier, later = later, earlier
    assert (uuid7(earlier) < uuid7(later)) or earlier == later


def test_ids_of_one_moment_differ() -> None:
    assert len({uuid7(AT_MS) for _ in range(10_000)}) == 10_000


@pytest.mark.parametrize("at_ms", [-1, 2**48])
def test_a_time_that_does_not_fit_is_refused(at_ms: int) -> None:
    with pytest.raises(OverflowError):
        uuid7(at_ms)


def test_an_entry_id_is_eight_hex_digits_that_nobody_has() -> None:
    taken: set[object] = set()
    for _ in range(2_000):
        drawn = new_entry_id(taken, at_ms=AT_MS)
        assert re.fullmatch(r"[0-9a-f]{8}", drawn)
        assert drawn not in taken
        taken.add(drawn)


def test_when_no_short_id_is_free_a_whole_one_is_given() -> None:
    taken = Everything()
    assert uuid.UUID(new_entry_id(taken, at_ms=AT_MS)).version == 7
    assert taken.asked == ENTRY_ID_DRAWS
