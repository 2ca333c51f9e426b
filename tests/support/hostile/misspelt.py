"""Documents with one key too many: a known one misspelt, or one that nobody knows."""

import copy
import random
import string
from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str | int, ...]


def misspelt(key: str, draw: random.Random) -> str:
    """Return a key with one letter more, less, doubled, exchanged, or in the other case."""
    at = draw.randrange(len(key))
    match draw.randrange(5):
        case 0:
            return key[:at] + key[at + 1 :]
        case 1:
            return key[:at] + draw.choice(string.ascii_lowercase) + key[at:]
        case 2:
            return key[: at + 1] + key[at:]
        case 3:
            return key[:at] + draw.choice(string.ascii_lowercase) + key[at + 1 :]
        case _:
            return key[:at] + key[at].swapcase() + key[at + 1 :]


def foreign(draw: random.Random) -> str:
    """Return a key that nobody thought of."""
    return "".join(draw.choices(string.ascii_letters, k=draw.randint(1, 14)))


def objects(value: Any, above: Path = ()) -> Iterator[Path]:
    """Return where the objects of a document are."""
    if isinstance(value, dict):
        yield above
        for key, inner in value.items():
            yield from objects(inner, (*above, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from objects(inner, (*above, index))


def with_wrong_key(
    document: Mapping[str, Any], place: Path, *, known: frozenset[str], draw: random.Random
) -> tuple[dict[str, Any], str]:
    """Return a copy with a wrong key in the object at a place, and that key.

    A misspelt one stands in the place of the right one, when the object has any.
    """
    changed = copy.deepcopy(dict(document))
    here: Any = changed
    for step in place:
        here = here[step]
    while True:
        if here and draw.random() < 0.7:
            right = draw.choice(sorted(here))
            wrong = misspelt(right, draw)
            value = here[right]
        else:
            right, wrong, value = None, foreign(draw), draw.choice([1, "x", True, None, {}, []])
        if wrong not in {"", right, *known} and not wrong.startswith(("_", "$", "//")):
            break
    if right is not None:
        del here[right]
    here[wrong] = value
    return changed, wrong
