"""One process at most waits for its command, and none once the containment is closed."""

from agent_core.workspace.sandbox.values import Slot


class Waits:
    """Counts how often it was ended."""

    def __init__(self) -> None:
        self.ended = 0

    def end(self) -> None:
        self.ended += 1


def test_one_waits_at_most_and_is_taken_once() -> None:
    slot, first, second = Slot(), Waits(), Waits()
    assert slot.take() is None
    slot.fill(lambda: None)
    slot.fill(lambda: first)
    slot.fill(lambda: second)
    assert (slot.take(), slot.take()) == (first, None)
    slot.fill(lambda: second)
    assert slot.take() is second
    assert (first.ended, second.ended) == (0, 0)


def test_a_closed_slot_ends_what_waits_and_starts_nothing() -> None:
    slot, waits = Slot(), Waits()
    slot.fill(lambda: waits)
    slot.close()
    slot.close()
    started = list[Waits]()
    slot.fill(lambda: started.append(waits))
    assert (waits.ended, slot.take(), started) == (1, None, [])
