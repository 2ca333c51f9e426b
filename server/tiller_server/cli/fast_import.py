"""Loads the modules of a command without what only costs time."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from agent_core.kernel.gc_pause import gc_paused

PLUGINS: Final = "PYDANTIC_DISABLE_PLUGINS"
"""Read by pydantic; else it looks into every installed package for plugins, which takes as long as importing it."""
ALL: Final = "__all__"


@contextmanager
def loading() -> Generator[None]:
    """Import modules inside of this: no search for garbage, as they all stay, and none for pydantic's plugins.

    The environment is as before afterwards: the programs that a session starts may want their plugins.
    """
    environment = os.environ  # noqa: TID251 - pydantic looks nowhere else
    before = environment.get(PLUGINS)
    environment[PLUGINS] = ALL if before is None else before
    try:
        with gc_paused():
            yield
    finally:
        if before is None:
            del environment[PLUGINS]
