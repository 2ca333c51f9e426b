"""A daemon that nobody uses leaves, and no other."""

import pytest

from tiller_server.daemon.daemon import IDLE_S, IdleTimer, idle_limit_s


def test_time_counts_from_the_last_use() -> None:
    quiet = IdleTimer(limit_s=100, since_s=0)
    assert quiet.look(0, is_used=True) == 30
    assert quiet.look(80, is_used=False) == 20
    assert quiet.look(90, is_used=True) == 30
    assert quiet.look(189, is_used=False) == 1
    assert quiet.look(190, is_used=False) is None


@pytest.mark.parametrize(
    ("value", "limit_s"),
    [("60", 60.0), ("0.5", 0.5), ("", IDLE_S), ("soon", IDLE_S), ("0", IDLE_S), ("-5", IDLE_S)],
)
def test_the_limit_is_a_number_of_seconds_or_the_usual(value: str, limit_s: float) -> None:
    assert idle_limit_s({"TILLER_DAEMON_IDLE_S": value}) == limit_s
