"""A history of thirty commits with defects planted in it, among clean changes, renames, moves and a merge."""

from dataclasses import dataclass
from pathlib import Path

from tests.support.workspace.repositories import Repository

CART = '''\
"""Sums up what is in a cart."""


class Cart:
    """Things to buy."""

    def __init__(self):
        self.items = []

    def add(self, name, price, count=1):
        self.items.append((name, price, count))

    def total(self):
        amount = 0
        for _, price, count in self.items:
            amount += price * count
        return amount
'''
STORE = '''\
"""Keeps carts in a database."""


def find(connection, name):
    rows = connection.execute("select * from carts where name = ?", (name,))
    return rows.fetchone()


def remove(connection, name):
    connection.execute("delete from carts where name = ?", (name,))
'''
RATES = '''\
"""Tax rates by country."""

RATES = {"de": 0.19, "fr": 0.2, "at": 0.2}


def rate(country):
    return RATES.get(country, 0.0)
'''
DATES = '''\
"""Days and weeks."""

import datetime


def due(day, weeks):
    return day + datetime.timedelta(weeks=weeks)
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A defect: where it ends up, and how it reads there."""

    path: str
    code: str
    category: str = "bug"


PLANTED = (
    Planted(path="shop/basket.py", code="for _, price, count in self.items[1:]:"),
    Planted(path="shop/basket.py", code="return amount - amount * percent"),
    Planted(
        path="shop/storage/carts.py",
        code="\"delete from carts where name = '%s'\" % name",
        category="security",
    ),
    Planted(path="shop/rates.py", code="return RATES[country]"),
    Planted(path="shop/dates.py", code="return day + datetime.timedelta(days=weeks)"),
    Planted(path="shop/mail.py", code="except Exception:", category="maintainability"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The repository, and its branches."""

    repository: Repository
    base: str = "main"
    head: str = "feature"


def make_history(root: Path) -> History:
    """Make it: twelve commits on `main`, of which two came later, the others on `feature`, which is checked out."""
    repo = Repository(root)
    files = {"shop/cart.py": CART, "shop/store.py": STORE, "shop/rates.py": RATES}
    repo.commit("Begin", files)
    repo.commit("Dates", {"shop/dates.py": DATES, "shop/__init__.py": ""})
    repo.commit("Rules for agents", {"AGENTS.md": "Money is counted in cents.\n"})
    repo.commit("Rules for reviews", {".tiller/review.md": "Look at SQL with care.\n"})
    repo.commit(
        "What is made by programs", {".gitattributes": "shop/tables.py linguist-generated\n"}
    )
    for number in range(5):
        repo.commit(f"Notes {number}", {f"notes/{number}.md": f"Note {number}\n" * 5})
    repo.git("checkout", "--quiet", "-b", "feature")
    _feature(repo)
    repo.git("checkout", "--quiet", "main")
    repo.commit("Meanwhile 1", {"notes/meanwhile.md": "On main.\n"})
    repo.commit("Meanwhile 2", {"notes/0.md": "Rewritten on main.\n"})
    repo.git("checkout", "--quiet", "feature")
    repo.git("merge", "--quiet", "--no-edit", "main")
    _end(repo)
    count = int(repo.git("rev-list", "--count", "feature"))
    assert count == 30, count
    return History(repository=repo)


def _feature(repo: Repository) -> None:
    repo.replace("shop/cart.py", "in self.items:", "in self.items[1:]:")
    repo.commit("Total of the cart")
    repo.replace(
        "shop/store.py",
        '"delete from carts where name = ?", (name,)',
        "\"delete from carts where name = '%s'\" % name",
    )
    repo.commit("Remove by name")
    repo.write(
        "shop/cart.py",
        repo.read("shop/cart.py")
        + "\n    def discounted(self, percent):\n        amount = self.total()\n        return amount - amount * percent\n",
    )
    repo.commit("Discounts")
    repo.git("mv", "shop/cart.py", "shop/basket.py")
    repo.commit("A cart is a basket")
    repo.write("shop/storage/__init__.py", "")
    repo.git("mv", "shop/store.py", "shop/storage/carts.py")
    repo.commit("Storage has its own folder")
    repo.replace("shop/rates.py", "return RATES.get(country, 0.0)", "return RATES[country]")
    repo.commit("Rates")
    repo.replace(
        "shop/basket.py",
        '"""Things to buy."""',
        '"""Things to buy.\n\n    In the order in which they were put there.\n    """',
    )
    repo.commit("Say what a basket is")
    repo.replace("shop/dates.py", "timedelta(weeks=weeks)", "timedelta(days=weeks)")
    repo.commit("When it is due")
    repo.commit(
        "Mail",
        {
            "shop/mail.py": '"""Sends mail."""\n\n\ndef send(post, text):\n    try:\n        post(text)\n    except Exception:\n        pass\n'
        },
    )
    repo.commit("A lock file", {"uv.lock": "locked = true\n" * 50})
    repo.commit("A table", {"shop/tables.py": "ROWS = 1\n" * 50, "logo.png": b"\x89PNG\0\0"})


def _end(repo: Repository) -> None:
    repo.replace(
        "shop/basket.py",
        '"""Sums up what is in a cart."""',
        '"""Sums up what is in a basket.\n\nPrices are cents.\n"""',
    )
    repo.commit("Words")
    repo.commit(
        "A clean function",
        {"shop/words.py": "def plural(count):\n    return '' if count == 1 else 's'\n"},
    )
    for number in range(3):
        repo.commit(f"Clean {number}", {f"notes/clean{number}.md": "All is well.\n"})
    repo.git("mv", "notes/1.md", "notes/one.md")
    repo.commit("A rename only")
