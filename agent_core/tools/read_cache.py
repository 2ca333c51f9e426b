"""Remembers the texts that a model was shown, so that what people changed since is not taken for its own wish."""

from pathlib import Path
from typing import Final

MOST_TEXTS: Final = 64
MOST_CHARS: Final = 16_000_000
"""Of all remembered texts together."""


class ReadCache:
    """The text of each file as a model knows it: as it was read last, with what the model changed in it since.

    The files looked at longest ago are forgotten first; of them nothing is known then.
    """

    def __init__(self) -> None:
        self._texts: dict[Path, str] = {}

    def get(self, path: Path) -> str | None:
        """Return what is known of a file; None: nothing."""
        return self._texts.get(path)

    def forget(self, path: Path) -> None:
        """Forget the text of a file: its present content comes from the model itself or from an unknown source."""
        _ = self._texts.pop(path, None)

    def clear(self) -> None:
        """Know nothing any more: the conversation is another one now."""
        self._texts.clear()

    def put(self, path: Path, text: str) -> None:
        """Record what a model knows from now on."""
        _ = self._texts.pop(path, None)
        self._texts[path] = text
        while len(self._texts) > MOST_TEXTS or (
            len(self._texts) > 1 and sum(map(len, self._texts.values())) > MOST_CHARS
        ):
            del self._texts[next(iter(self._texts))]
