"""Lease of a slot: renewed by a thread, and watched by another, which ends the process in time."""

import logging
from collections.abc import Callable
from threading import Event, Thread
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from agent_core.kernel import Clock, SystemClock
from tiller_server.fleet.errors import FenceLost
from tiller_server.fleet.fault_points import pass_point
from tiller_server.fleet.store.slots import SlotStore
from tiller_server.fleet.values import SlotLease

LOG: Final = logging.getLogger(__name__)
SAFE_SHARE: Final = 8 / 9
"""Share of the lease after which this process is no longer sure of it: 40 s of 45 s."""
WATCHES: Final = 90
"""How often in a lease the watching thread looks."""
FAILURES: Final = 2
"""Renewals that may fail in sequence while jobs are still taken."""


class SlotKeeper:
    """Keeps the lease of this process. Threads, so that a busy event loop does not lose it.

    The renewal may hang in a network that swallows packets; the other thread then ends the process all the same.
    """

    def __init__(
        self,
        slots: SlotStore,
        lease: SlotLease,
        *,
        renew_s: float,
        on_lost: Callable[[str], None],
        clock: Clock | None = None,
    ) -> None:
        """Begin with a lease that was just made.

        Args:
            slots: The slots; their lease decides how long this process may go on.
            lease: The slot of this process.
            renew_s: Pause between two renewals.
            on_lost: Called from a thread with the reason why this process must end at once.
            clock: The time of this machine.
        """
        self._slots = slots
        self.lease: Final = lease
        self._renew_s = renew_s
        self._safe_s = slots.lease_ms / 1000 * SAFE_SHARE
        self._on_lost = on_lost
        self._clock = clock or SystemClock()
        self._renewed_s = self._clock.monotonic_s()
        self._failures = 0
        self._is_drained = False
        self._stopping = Event()

    @property
    def is_drained(self) -> bool:
        """Whether the slot was marked to be drained, as the last renewal read it."""
        return self._is_drained

    def is_fresh(self) -> bool:
        """Return whether the lease is surely this process's. It is asked right before each write and each request to a forge."""
        return self._clock.monotonic_s() - self._renewed_s < self._safe_s

    def takes_work(self) -> bool:
        """Return whether this process may begin jobs."""
        age_s = self._clock.monotonic_s() - self._renewed_s
        is_sure = self._failures < FAILURES and age_s < self._renew_s * (FAILURES + 1)
        return is_sure and not self._is_drained

    def start(self) -> None:
        """Start the threads."""
        for target in (self._renew_always, self._watch):
            Thread(target=target, name=f"fleet{target.__name__}", daemon=True).start()

    def stop(self) -> None:
        """Stop the threads after what they do now; the lease stays."""
        self._stopping.set()

    def renew(self) -> None:
        """Renew the lease once."""
        asked_s = self._clock.monotonic_s()
        pass_point("renew.before")
        try:
            slot = self._slots.renew(self.lease)
        except FenceLost as error:
            self._on_lost(str(error))
            return
        except SQLAlchemyError as error:
            self._failures += 1
            LOG.warning("the lease of slot %d was not renewed: %s", self.lease.slot, error)
            return
        pass_point("renew.after")
        self._renewed_s = asked_s
        self._failures = 0
        self._is_drained = slot.is_drained

    def _renew_always(self) -> None:
        while not self._stopping.wait(self._renew_s):
            self.renew()

    def _watch(self) -> None:
        while not self._stopping.wait(self._safe_s / WATCHES):
            if not self.is_fresh():
                self._on_lost(
                    f"the lease of slot {self.lease.slot} could not be renewed for {self._safe_s:.0f} s"
                )
                return
