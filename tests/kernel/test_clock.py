"""Time: written and read as RFC 3339, and a clock that only goes forward."""

import anyio
import pytest
from hypothesis import given, strategies as st

from agent_core.kernel import SystemClock, parse_rfc3339, rfc3339

FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_795_000_000_123, "2026-11-18T11:06:40.123Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1_709_164_800_005, "2024-02-29T00:00:00.005Z"),
        (LAST_MS, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_a_time_is_written_in_utc_with_milliseconds(at_ms: int, text: str) -> None:
    assert rfc3339(at_ms) == text
    assert parse_rfc3339(text) == at_ms


@given(at_ms=st.integers(-(10**11), LAST_MS))
def test_any_time_comes_back(at_ms: int) -> None:
    assert parse_rfc3339(rfc3339(at_ms)) == at_ms


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-18T11:06:40Z",
        "2026-11-18T12:06:40+01:00",
        "2026-11-18T11:06:40",
        "2026-11-18 11:06:40.000000+00:00",
        "2026-11-18T11:06:40.000499Z",
    ],
)
def test_times_of_other_programs_are_read(text: str) -> None:
    assert parse_rfc3339(text) == 1_795_000_000_000


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01T00:00:00Z", "2026-11-18T25:00:00Z"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_rfc3339(text)


async def test_the_clock_of_the_machine_goes_forward_and_its_wait_can_be_cancelled() -> None:
    clock = SystemClock()
    assert clock.now_ms() > 1_700_000_000_000
    before = clock.monotonic_s()
    await clock.sleep(0.001)
    assert clock.monotonic_s() > before
    with anyio.move_on_after(0.01) as scope:
        await clock.sleep(60)
    assert scope.cancelled_caught
