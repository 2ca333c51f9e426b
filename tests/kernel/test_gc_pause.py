"""Garbage collection pauses while values are created, and resumes."""

import gc
import weakref
from collections.abc import Mapping

from agent_core.kernel.threads import gc_paused


class Circle:
    itself: "Circle | None" = None


def test_the_search_for_garbage_goes_on_and_finds_what_was_made_meanwhile() -> None:
    gc.unfreeze()
    with gc_paused():
        assert not gc.isenabled()
        circle = Circle()
        circle.itself = circle
        left = weakref.ref(circle)
        del circle
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert left() is None


def test_a_search_that_was_off_stays_off() -> None:
    with gc_paused():
        with gc_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_a_process_keeps_frozen_stays_frozen() -> None:
    def looked(phase: str, info: Mapping[str, int]) -> None:
        """Watch, as a process does that freezes what it holds."""

    gc.callbacks.append(looked)
    gc.freeze()
    try:
        with gc_paused():
            pass
        assert gc.get_freeze_count() > 0
    finally:
        gc.callbacks.remove(looked)
        gc.unfreeze()
