"""Two tests for `test_testkit_loops`: one is slow where it runs first, the other always. Not collected by itself."""

import threading

used: list[bool] = []


def test_first() -> None:
    if not used:
        used.append(threading.Event().wait(0.3))


def test_slow() -> None:
    threading.Event().wait(0.3)
