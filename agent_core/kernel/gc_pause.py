"""Pauses garbage collection where whole files are decoded."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Generator[None]:
    """Pause cyclic garbage collection in the whole process while many long-lived values are created.

    Collections would traverse these values again and again: up to a fifth of the time. Several threads may pause at
    once; collection resumes when the first of those that found it enabled is done. The values created meanwhile are
    in the oldest generation then.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():
                # Frozen and unfrozen, all that there is belongs to the oldest generation.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
