"""The collector's full looks stay short, and nothing is kept for good because of that."""

import gc
import weakref
from collections.abc import Generator

import pytest

from tiller_server.process.gc_tuning import MOST_PUT_OFF, TIDY_S, IncrementalGc


class Node:
    """Something that can be part of a cycle."""

    def __init__(self) -> None:
        self.other: Node | None = None


class EnoughError(Exception):
    """Ends an endless task."""


@pytest.fixture
def looks() -> Generator[IncrementalGc]:
    before = list(gc.callbacks)
    gc.unfreeze()
    with IncrementalGc().held() as looks:
        yield looks
    assert gc.callbacks == before
    assert gc.get_freeze_count() == 0


def cycle() -> tuple[Node, weakref.ref[Node]]:
    one, other = Node(), Node()
    one.other, other.other = other, one
    return one, weakref.ref(one)


def seen_by_the_collector(thing: object) -> bool:
    return any(one is thing for one in gc.get_objects())


def test_what_is_loaded_when_it_begins_is_not_looked_at_again(looks: IncrementalGc) -> None:
    node = Node()
    assert seen_by_the_collector(node)
    looks.begin()
    assert not seen_by_the_collector(node)


def test_what_a_full_look_leaves_is_spared_the_next_one(looks: IncrementalGc) -> None:
    looks.begin()
    node = Node()
    _ = gc.collect(1)
    assert seen_by_the_collector(node)
    _ = gc.collect()
    assert not seen_by_the_collector(node)


def test_garbage_that_was_never_spared_is_freed_as_ever(looks: IncrementalGc) -> None:
    looks.begin()
    node, seen = cycle()
    del node
    _ = gc.collect()
    assert seen() is None


def test_garbage_that_was_spared_is_freed_by_tidying(looks: IncrementalGc) -> None:
    looks.begin()
    node, seen = cycle()
    _ = gc.collect()
    del node
    _ = gc.collect()
    assert seen() is not None
    looks.tidy()
    assert seen() is None


def test_before_it_begins_nothing_is_different(looks: IncrementalGc) -> None:
    frozen = gc.get_freeze_count()
    _ = gc.collect()
    looks.tidy()
    assert gc.get_freeze_count() == frozen


async def test_tidying_waits_for_runs_but_not_for_ever(looks: IncrementalGc) -> None:
    looks.begin()
    node, seen = cycle()
    _ = gc.collect()
    del node
    naps: list[float] = []
    gone_after: list[int] = []

    async def sleep(seconds: float) -> None:
        if seen() is None:
            gone_after.append(len(naps))
            raise EnoughError
        naps.append(seconds)

    with pytest.raises(EnoughError):
        await looks.keep_tidy(lambda: True, sleep=sleep)
    assert naps == [TIDY_S] * MOST_PUT_OFF
    assert gone_after == [MOST_PUT_OFF]
