"""Small real modules, and slips of the finger planted in them."""

import io
import keyword
import random
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PROJECT: Mapping[str, str] = {
    "library/__init__.py": "",
    "library/money.py": '''\
"""Sums of money."""

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

CENT = Decimal("0.01")


@dataclass(frozen=True)
class Money:
    amount: Decimal
    currency: str = "EUR"

    def rounded(self):
        return Money(self.amount.quantize(CENT, rounding=ROUND_HALF_UP), self.currency)

    def plus(self, other):
        if other.currency != self.currency:
            raise ValueError(f"{other.currency} is not {self.currency}")
        return Money(self.amount + other.amount, self.currency)


def total(parts):
    result = Money(Decimal(0))
    for part in parts:
        result = result.plus(part)
    return result.rounded()
''',
    "library/shelf.py": '''\
"""Books on a shelf."""

import collections
import json
import re

from library.money import Money, total


class Shelf:
    def __init__(self, capacity):
        self.capacity = capacity
        self.books = []

    def add(self, title, price):
        if len(self.books) >= self.capacity:
            raise OverflowError("the shelf is full")
        self.books.append((title.strip(), price))
        return self

    def titles(self):
        return sorted(title for title, _ in self.books)

    def value(self):
        return total(Money(price) for _, price in self.books)

    def initials(self):
        counter = collections.Counter(title[0].upper() for title in self.titles())
        return dict(counter.most_common())

    def search(self, pattern):
        compiled = re.compile(pattern, re.IGNORECASE)
        return [title for title in self.titles() if compiled.search(title)]

    def dump(self):
        rows = [{"title": title, "price": str(price)} for title, price in self.books]
        return json.dumps(rows, sort_keys=True)
''',
    "library/report.py": '''\
"""Reports on shelves."""

import textwrap
from statistics import mean as average

WIDTH = 30


def report(shelf):
    lines = [describe(shelf)]
    for title in shelf.titles():
        lines.append(textwrap.shorten(title, WIDTH))
    return "\\n".join(lines)


def describe(shelf):
    value = shelf.value()
    return f"{len(shelf.books)} books, {value.amount} {value.currency}"


def mean_length(shelf):
    lengths = [len(title) for title in shelf.titles()]
    return average(lengths)
''',
    "tests/__init__.py": "",
    "tests/test_library.py": """\
import json
import unittest
from decimal import Decimal

from library.money import Money, total
from library.report import describe, mean_length, report
from library.shelf import Shelf


def sample():
    return Shelf(3).add("Emma ", Decimal("9.995")).add("dracula", Decimal("5")).add("Dubliners", Decimal("1"))


class LibraryTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([Money(Decimal("1.005"))]).amount, Decimal("1.01"))
        self.assertEqual(sample().value().amount, Decimal("16.00"))

    def test_currencies_do_not_mix(self):
        with self.assertRaisesRegex(ValueError, "USD is not EUR"):
            Money(Decimal(1)).plus(Money(Decimal(1), "USD"))

    def test_titles(self):
        self.assertEqual(sample().titles(), ["Dubliners", "Emma", "dracula"])
        self.assertEqual(sample().initials(), {"D": 2, "E": 1})
        self.assertEqual(sample().search("^d"), ["Dubliners", "dracula"])

    def test_full(self):
        with self.assertRaises(OverflowError):
            sample().add("Ulysses", Decimal(1))

    def test_dump(self):
        self.assertEqual(json.loads(sample().dump())[0], {"title": "Emma", "price": "9.995"})

    def test_report(self):
        self.assertEqual(describe(sample()), "3 books, 16.00 EUR")
        self.assertEqual(report(sample()).splitlines()[1], "Dubliners")
        self.assertEqual(mean_length(sample()), (4 + 7 + 9) / 3)
""",
}
SHORTEST = 4
"""A slip in a shorter name may well give another name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Typo:
    """A slip, where it was made."""

    path: str
    line: int
    right: str
    wrong: str


def write_project(root: Path, files: Mapping[str, str] = PROJECT) -> Path:
    """Write files below a folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def plant(root: Path, chance: random.Random) -> Typo:
    """Misspell one name in one of the project's own modules."""
    places = [
        (path, token)
        for path, text in PROJECT.items()
        if path.startswith("library/")
        for token in _names(text)
    ]
    path, token = chance.choice(places)
    wrong = _slip(token.string, chance)
    file = root / path
    lines = file.read_text(encoding="utf-8").split("\n")
    row, column = token.start[0] - 1, token.start[1]
    lines[row] = lines[row][:column] + wrong + lines[row][column + len(token.string) :]
    file.write_text("\n".join(lines), encoding="utf-8")
    return Typo(path=path, line=token.start[0], right=token.string, wrong=wrong)


def _names(text: str) -> Iterator[tokenize.TokenInfo]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        long = len(token.string) >= SHORTEST
        plain = not keyword.iskeyword(token.string) and not token.string.startswith("__")
        if token.type == tokenize.NAME and long and plain:
            yield token


def _slip(name: str, chance: random.Random) -> str:
    while True:
        at = chance.randrange(len(name) - 1)
        wrong = chance.choice(
            (
                name[:at] + name[at + 1] + name[at] + name[at + 2 :],
                name[:at] + name[at + 1 :],
                name[: at + 1] + name[at:],
            )
        )
        if wrong != name and wrong.isidentifier() and not keyword.iskeyword(wrong):
            return wrong
