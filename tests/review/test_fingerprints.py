"""A finding keeps its name when the text around it is changed, and does not share it with another."""

import json
import random
from collections.abc import Callable, Sequence

import pytest

from tests.support.review.reviewing import Reviewing, a_report, reports, says
from tests.support.review.reviews import a_finding
from tests.support.workspace.repositories import Repository
from tiller_server.review.findings.baseline import not_accepted, read_baseline
from tiller_server.review.findings.deduplication import merged, unique
from tiller_server.review.findings.fingerprints import fingerprint, former_fingerprint, numbered

ROUNDS = 40
WRONG = "total += price * count"
FUNCTIONS = tuple(
    f"def step_{number}(items, rate):\n"
    f"    total = {number}\n"
    f"    for price, count in items.values_{number}():\n"
    f"        total += price * count\n"
    f'        log("running total", step={number})\n'
    f"    return total * rate"
    for number in range(6)
)
MEANT = "def planted(cart):\n    for price, count in cart.lines:\n        total += price * count\n        seen.append(price)\n    return total, seen"
TEXT = "\n\n\n".join((*FUNCTIONS[:3], MEANT, *FUNCTIONS[3:])).split("\n")
AT = TEXT.index("def planted(cart):") + 2

Edited = tuple[list[str], int]
"""A text, and the index of the line that is meant."""


def name_of(lines: Sequence[str], index: int) -> str:
    return fingerprint(lines, line=index + 1, category="bug")


def rename_function(lines: list[str], at: int, dice: random.Random) -> Edited:
    head = max(n for n in range(at) if lines[n].startswith("def "))
    return [*lines[:head], f"def name_{dice.random()}(cart):", *lines[head + 1 :]], at


def rename_heading(lines: list[str], at: int, dice: random.Random) -> Edited:
    return [*lines[: at - 1], f"    for one in chosen_{dice.random()}:", *lines[at:]], at


def move_function(lines: list[str], at: int, dice: random.Random) -> Edited:
    blocks = "\n".join(lines).split("\n\n\n")
    (meant,) = [block for block in blocks if "seen.append(price)" in block]
    blocks.remove(meant)
    blocks.insert(dice.randrange(len(blocks) + 1), meant)
    moved = "\n\n\n".join(blocks).split("\n")
    return moved, next(n for n, line in enumerate(moved) if "seen.append(price)" in line) - 1


def reindent_function(lines: list[str], at: int, dice: random.Random) -> Edited:
    by = dice.choice(["  ", "\t", "        "])
    head = max(n for n in range(at) if lines[n].startswith("def "))
    end = next((n for n in range(at, len(lines)) if not lines[n]), len(lines))
    block = [by + line for line in lines[head:end]]
    return [*lines[:head], f"class In{dice.randrange(9)}:", *block, *lines[end:]], at + 1


def wrap_line(lines: list[str], at: int, dice: random.Random) -> Edited:
    depth = len(lines[at]) - len(lines[at].lstrip())
    head = " " * depth + f"if ready({dice.random()}):"
    return [*lines[:at], head, *("    " + one for one in lines[at : at + 2]), *lines[at + 2 :]], (
        at + 1
    )


def equal_line_above(lines: list[str], at: int, dice: random.Random) -> Edited:
    place = dice.randrange(at + 1)
    return [*lines[:place], lines[at], *lines[place:]], at + 1


def equal_line_below(lines: list[str], at: int, dice: random.Random) -> Edited:
    place = dice.randrange(at + 1, len(lines) + 1)
    return [*lines[:place], lines[at], *lines[place:]], at


def comment_beside(lines: list[str], at: int, dice: random.Random) -> Edited:
    place = at + dice.randrange(2)
    note = f"        # {dice.random()}: what is summed up here, and in which order it is done"
    return [*lines[:place], note, *lines[place:]], at + (place == at)


EDITS: tuple[Callable[[list[str], int, random.Random], Edited], ...] = (
    rename_function,
    rename_heading,
    move_function,
    reindent_function,
    wrap_line,
    equal_line_above,
    equal_line_below,
    comment_beside,
)


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_name_survives(edit: Callable[..., Edited], seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - the same edits every time
    lines, at = edit(list(TEXT), AT, dice)
    assert lines[at].strip() == WRONG
    assert name_of(lines, at) == name_of(TEXT, AT)


def test_equal_lines_of_one_file_have_names_of_their_own() -> None:
    places = [n for n, line in enumerate(TEXT) if line.strip() == WRONG]
    assert len(places) == len({name_of(TEXT, place) for place in places}) == 7


ALONE = {
    "its function is renamed": ("def f(cart):\n    return 1", "def g(cart):\n    return 1", True),
    "its function takes something else": (
        "def f(a):\n    return 1",
        "def f(b):\n    return 1",
        False,
    ),
    "its class is renamed": ("class A(Base):\n    x = 1", "class B(Base):\n    x = 1", True),
    "a heading without a name": ("else:\n    return 1", "try:\n    return 1", True),
}


@pytest.mark.parametrize(("text", "other", "is_same"), ALONE.values(), ids=ALONE)
def test_a_line_alone_goes_by_the_heading_without_its_name(
    text: str, other: str, is_same: bool
) -> None:
    names = [name_of(one.split("\n"), 1) for one in (text, other)]
    assert (names[0] == names[1]) is is_same


def test_what_cannot_be_told_apart_by_its_text_is_numbered() -> None:
    text = ["def f():", "    return None", "", "", "def g():", "    return None"]
    both = [a_finding(line=line, fingerprint=name_of(text, line - 1)) for line in (2, 6)]
    first, second = (one.fingerprint for one in unique(both))
    assert (first, second) == (name_of(text, 1), numbered(name_of(text, 1), 1))


def test_a_line_without_letters_has_a_name() -> None:
    assert name_of(["}", "", "  }", ""], 2) == name_of(["", "}"], 1)


def test_a_baseline_of_before_is_still_read() -> None:
    lines = ("def f(a):", "    return a", "", "def g(a):", "    return a")
    found = [
        a_finding(line=line, fingerprint=name_of(lines, line - 1), title=f"At {line}")
        for line in (2, 5)
    ]
    old = former_fingerprint(lines, line=2, category="bug")
    file = {"version": 1, "accepted": [{"fingerprint": old}]}
    accepted = read_baseline(json.dumps(file).encode(), name="b.json")
    left = not_accepted(unique(found), accepted, texts={"src/cart.py": lines})
    assert [one.title for one in left] == ["At 5"]


def test_what_was_found_before_keeps_its_name_when_it_is_found_again() -> None:
    before = a_finding(fingerprint="b" * 32, severity="note")
    again = a_finding(fingerprint="a" * 32, severity="error", title="Said better")
    other = a_finding(line=20, fingerprint="b" * 32)
    found, dropped = merged([again, other], carried=[before])
    assert [(one.title, one.fingerprint) for one in found] == [
        ("Said better", "b" * 32),
        (other.title, numbered("b" * 32, 1)),
    ]
    assert len(dropped) == 1


async def test_a_second_equal_line_is_another_finding_beside_the_accepted_one(
    reviewing: Reviewing, repository: Repository
) -> None:
    repository.commit("Begin", {"cart.py": "A = 1\n"})
    repository.git("checkout", "--quiet", "-b", "feature")
    repository.commit("Sum", {"cart.py": "\n".join(TEXT) + "\n"})
    meant = a_report("cart.py", AT + 1, WRONG)
    first = await reviewing.review(reports(meant), says("."))
    names = frozenset(one.fingerprint for one in first.findings)
    line = "def more(cart):\n    total += price * count\n    return round(total)\n"
    repository.write("cart.py", line + "\n\n" + repository.read("cart.py") + "\n\n" + line)
    repository.commit("Twice more")
    found = [a_report("cart.py", number, WRONG) for number in (2, AT + 6, len(TEXT) + 9)]
    second = await reviewing.review(reports(*found), says("."), accepted=names)
    assert second.accepted == 1
    assert [one.line for one in second.findings] == [2, len(TEXT) + 9]
    assert len({one.fingerprint for one in second.findings}) == 2


async def test_with_the_report_of_before_a_name_survives_whatever_stands_around(
    reviewing: Reviewing, repository: Repository
) -> None:
    repository.commit("Begin", {"cart.py": "A = 1\n"})
    repository.git("checkout", "--quiet", "-b", "feature")
    repository.commit("Sum", {"cart.py": MEANT + "\n"})
    report = reports(a_report("cart.py", 3, WRONG))
    first = await reviewing.review(report, says("."))
    repository.commit("Around", {"cart.py": f"def other(x):\n    {WRONG}\n    x.close()\n"})
    second = await reviewing.review(says("."), earlier=first)
    assert second.findings[0].fingerprint == first.findings[0].fingerprint
    assert second.fixed == ()
    (name,) = (one.fingerprint for one in first.findings)
    third = await reviewing.review(earlier=second, accepted=frozenset({name}))
    assert (third.findings, third.accepted) == ((), 1)
