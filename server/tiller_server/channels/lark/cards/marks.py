"""Invisible marks by which a message of ours is found again in the history; pure.

The history of the platform has no key of a message, and of a card only its title. So the key is written into the text,
or into the title of a card, as characters without width.
"""

from hashlib import sha256
from typing import Final

_DIGITS: Final = "\u200b\u200c\u200d\u2060"
_BYTES: Final = 8


def mark(key: str) -> str:
    """Return the mark of a key: 32 characters, two bits each."""
    number = int.from_bytes(sha256(key.encode()).digest()[:_BYTES])
    return "".join(_DIGITS[number >> shift & 3] for shift in range(_BYTES * 8 - 2, -1, -2))


def derived_key(key: str, part: str) -> str:
    """Return the key of a further message that belongs to one with a key, at most 50 characters."""
    return sha256(f"{key}\0{part}".encode()).hexdigest()[:40]
