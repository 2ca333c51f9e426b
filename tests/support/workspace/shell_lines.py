"""Makes command lines that are plain, nearly plain, or only look so; the same ones for the same seed."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

PROGRAMS = (
    "git",
    "pytest",
    "npm",
    "ls",
    "make",
    "alpha",
    "beta",
    "gamma",
    "delta",
    "py.test",
    "g++",
    "a-b",
    "x_1",
)
BARE = (
    "status", "-x", "--flag=value", "HEAD~1", "HEAD@{1}", "src/a.py", "tests/test_a.py::test_b", "1", "-1", "3.5",
    "a,b", "x=y", "@", "%", "^HEAD", "HEAD^", ":/x", "+%s", ".", "..", "-", "--", "==", "a:b", "user@host", "%1",
    "http://x/y", "if", "then", "time", "in", "do", "=", "a==b", "x+=1", "a~b", "12", "-n5",
)  # fmt: skip
QUOTED = (
    "''", '""', "'a b'", '"a b"', "'$x'", "'`id`'", "'a\"b'", '"it\'s"', "'\\'", "'!'", "'a\nb'", '"a\nb"', '" "', "' '",
    '"a  b "', "'|'", '"&&"', "';'", "'#'", '"# no"', '"\n"', "'*'", '"*"', '"~"', "'{a,b}'", "'é'", '"日本"', "'-x'",
    '"  x"', '"x\n\n y"', '"("', "')'", '"<x>"', "'\t'",
)  # fmt: skip
DOUBTFUL = (
    "$x", "`id`", "a\\ b", "\\", "a\\\nb", "*", "?", "[a]", "{a,b}", "{1..3}", "{}", "(", ")", "{", "}", "!", "!x", "$(x)",
    "<x", ">x", "2>&1", "&", "|&", "#", "a#b", "#c", "'", '"', '"$x"', '"a\\"b"', "$'a'", '$"a"', "\r", "\x00", "\x07",
    "é", "\u200b", "\u00a0", "\ufe0f", "\u2028", "~/x", "<<E", "<<<x", ";;", "[[", "]]", "@(a)", "a=(b)", "((1))",
    "coproc", "function", "-{1}", "@{a,b}", "@{1,2}", "@{1..2}", "@{1}{2}", "\udc80", "\u0301", "''~", "a''~", "~", "a=~", "x:~",
)  # fmt: skip
BLANKS = (" ",) * 40 + ("  ", "\t", " \\\n", " \\\n  ", "\\\n", "\\\n ", " \t ")
JOINS = (
    "&&",
    "||",
    ";",
    "|",
    "\n",
    " && ",
    " || ",
    "; ",
    " | ",
    "\n\n",
    " &&\n",
    ";\n",
    " |\n# c\n",
    " # c\n",
    "\n# it's\n",
    "||\n",
)
AROUND = (
    ("(", ")"), ("( ", " )"), ("(", ";)"), ("( # c\n", "\n)"), ("{ ", "; }"), ("{\n", "\n}"), ("{ ", ";}"), ("! ", ""),
    ("! (", ")"), ("(! ", ")"), ("((", "))"), ("{", "}"), ("{ ", " }"), ("!", ""), ("( ( ", ") )"), ("{ { ", "; }; }"),
    ("({ ", "; })"), ("! ! ", ""), ("!\t", ""), ("(", "}"), ("", ")"), ("(", ""), ("", "; }"),
)  # fmt: skip
"""What stands before and behind a group of commands, or looks so."""
GROUPED_SHARE = 0.15
PLAIN_SHARE, QUOTED_SHARE = 0.62, 0.36
NOISE_SHARE = 0.1


@dataclass(slots=True)
class LineMaker:
    """Makes lines from a seed."""

    seed: int

    def lines(self) -> Iterator[str]:
        """Give lines without end."""
        draw = random.Random(self.seed)  # noqa: S311 - the same lines every time
        while True:
            yield _line(draw)


def _line(draw: random.Random) -> str:
    parts = [_part(draw)]
    for _ in range(draw.choice((0, 0, 1, 1, 2, 4))):
        parts += [draw.choice(JOINS), _part(draw)]
    text = draw.choice(("", "", " ", "\n", "# c\n")) + "".join(parts)
    text += draw.choice(("", "", "", " ", ";", "\n", " # end", "  \n"))
    if draw.random() < NOISE_SHARE:
        at = draw.randrange(len(text) + 1)
        text = text[:at] + draw.choice((*DOUBTFUL, *BARE, *QUOTED, *JOINS)) + text[at:]
    return text


def _part(draw: random.Random) -> str:
    """Make a command, or a few of them in a group."""
    if draw.random() >= GROUPED_SHARE:
        return _command(draw)
    before, behind = draw.choice(AROUND)
    parts = [_part(draw)]
    if draw.random() < 0.4:
        parts += [draw.choice(JOINS), _part(draw)]
    return before + "".join(parts) + behind


def _command(draw: random.Random) -> str:
    # A number of its own makes commands of one line differ, so that none can stand in for another.
    words = [draw.choice(PROGRAMS), f"n{draw.randrange(10_000)}"]
    words += [_word(draw) for _ in range(draw.choice((0, 1, 1, 2, 3)))]
    if draw.random() < 0.1:
        words[0] = draw.choice(
            (f'"{words[0]}"', f"'{words[0]}'", words[0][0] + f'"{words[0][1:]}"', _word(draw))
        )
    return "".join(word + draw.choice(BLANKS) for word in words[:-1]) + words[-1]


def _word(draw: random.Random) -> str:
    return "".join(_piece(draw) for _ in range(draw.choice((1, 1, 1, 1, 2, 3))))


def _piece(draw: random.Random) -> str:
    chance = draw.random()
    if chance < PLAIN_SHARE:
        return draw.choice(BARE)
    return draw.choice(QUOTED if chance < PLAIN_SHARE + QUOTED_SHARE else DOUBTFUL)
