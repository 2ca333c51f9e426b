"""A line is read with the words that bash would give, or it is said why not."""

import pytest

from agent_core.workspace.permissions.shell import (
    PlainCommandLine,
    UnclearCommandLine,
    read_command,
)
from agent_core.workspace.permissions.shell.strict_parser import LONGEST_BYTES, MOST_COMMANDS

PLAIN: dict[str, tuple[tuple[str, ...], ...]] = {
    "git status": (("git", "status"),),
    "  git \t status  ": (("git", "status"),),
    "git diff HEAD~1 -- src/a.py": (("git", "diff", "HEAD~1", "--", "src/a.py"),),
    "git stash show stash@{0}": (("git", "stash", "show", "stash@{0}"),),
    "pytest -k 'a and not b'": (("pytest", "-k", "a and not b"),),
    "ls '`id`' '$x' '\\'": (("ls", "`id`", "$x", "\\"),),
    '"git" \'status\' ""': (("git", "status", ""),),
    'r"u"\'f\'f check': (("ruff", "check"),),
    "git commit -m \"it's done\n\n- 日本 é\"": (("git", "commit", "-m", "it's done\n\n- 日本 é"),),
    'ls "  a  " "\n"': (("ls", "  a  ", "\n"),),
    "make x=1 a==b": (("make", "x=1", "a==b"),),
    "pytest -q && ls || npm test; git diff | cat\nls": (
        ("pytest", "-q"), ("ls",), ("npm", "test"), ("git", "diff"), ("cat",), ("ls",),
    ),
    "ls&&ls;ls|ls": (("ls",), ("ls",), ("ls",), ("ls",)),
    "ls &&\n\n  ls |\nls;": (("ls",), ("ls",), ("ls",)),
    "# look\ngit status # rm -rf x; it's\n# end": (("git", "status"),),
    "pytest \\\n  -q \\\n -x": (("pytest", "-q", "-x"),),
    "ls -- -1 12 3.5": (("ls", "--", "-1", "12", "3.5"),),
    "sudo rm -rf x": (("sudo", "rm", "-rf", "x"),),
    "(ls; git status)#x": (("ls",), ("git", "status")),
    "(\nls\n)\n(ls;)": (("ls",), ("ls",)),
    "( (ls) ) && ls": (("ls",), ("ls",)),
    "{ ls; }": (("ls",),),
    "{\nls a\n}|{ ls b;}\n": (("ls", "a"), ("ls", "b")),
    "({ (ls); }) || ls; ls": (("ls",), ("ls",), ("ls",)),
    "! ls && !\tls": (("ls",), ("ls",)),
    "(! (ls))": (("ls",),),
    "( " * 8 + "ls" + " )" * 8: (("ls",),),
    "ls #\nls # x": (("ls",), ("ls",)),
}  # fmt: skip

UNCLEAR: dict[str, str] = {
    "": "it runs nothing",
    " \n\t": "it runs nothing",
    "# only words": "it runs nothing",
    "ls $HOME": "uses a variable",
    'ls "$HOME"': "uses a variable",
    "ls ${x}": "uses a variable",
    "ls $(id)": "substitution",
    "ls `id`": "output of another command",
    'ls "`id`"': "output of another command",
    "ls a\\ b": "backslash",
    'ls "a\\b"': "backslash",
    "ls\\\n-l": "backslash",
    "git st\\\natus": "backslash",
    "$'ls'": "uses a variable",
    "ls *.py": "pattern",
    "ls a?": "pattern",
    "ls [ab]": "pattern",
    "ls ~": "home",
    "ls a=~/x": "home",
    "ls x:~": "home",
    "ls ''~": "home",
    "ls {a,b}": "braces",
    "ls a@{1,2}": "braces",
    "ls {1}": "braces",
    "f() ls": "parentheses",
    "f() { ls; }": "parentheses",
    "ls (a)": "parentheses",
    "((ls) )": "parentheses",
    "a=(b)": "parentheses",
    "(ls) (ls)": "parentheses",
    "(ls))": "parentheses",
    "{ ls; )": "parentheses",
    "(ls": "is not closed with ')'",
    "{ ls;": "is not closed with '}'",
    "()": "nothing stands before ')'",
    "(\n)": "nothing stands before ')'",
    "(ls &&)": "nothing stands before ')'",
    "(;ls)": "nothing stands before ';'",
    "{ ;ls; }": "nothing stands before ';'",
    "( &&": "nothing stands before '&&'",
    "(ls &&": "nothing follows '&&'",
    "(ls) x": "group of commands is followed by 'x'",
    "(ls)'x'": 'group of commands is followed by "\'"',
    "(ls) > x": "group of commands is followed by '>'",
    "{ ls; } 2>&1": "group of commands is followed by '2'",
    "(ls) &": "group of commands is followed by '&'",
    "ls; }": "braces",
    "{ ls }": "braces",
    "{ ls; }}": "braces",
    "{ (ls) }": "braces",
    "{ }": "nothing stands before '}'",
    "{ls; }": "braces",
    "(A=1)": "sets a variable",
    "(if)": "'if' is a word of the shell",
    "( " * 9 + "ls" + " )" * 9: "more than 8 groups in groups",
    "ls # a \\\nls": "comment that ends in a backslash",
    "ls > x": "writes to a file",
    "ls 2>&1": "writes to a file",
    "ls < x": "reads from a file",
    "cat <<E\nE": "reads from a file",
    "ls &": "background",
    "ls & ls": "background",
    "ls |& ls": "background",
    "!ls": "exclamation mark",
    "!(ls)": "exclamation mark",
    "! ! ls": "exclamation mark",
    "ls | ! ls": "exclamation mark",
    "ls ! ls": "exclamation mark",
    "! ": "nothing follows '!'",
    "! ; ls": "nothing follows '!'",
    "! \nls": "nothing follows '!'",
    "(! )": "nothing stands before ')'",
    "ls !$": "exclamation mark",
    'ls "!x"': "exclamation mark",
    "A=1 ls": "sets a variable",
    "A=1": "sets a variable",
    "A+=1 ls": "sets a variable",
    "if ls; then ls; fi": "'if' is a word of the shell",
    "time ls": "'time' is a word of the shell",
    "coproc ls": "'coproc' is a word of the shell",
    "ls; done": "'done' is a word of the shell",
    "%1": "names a job",
    "-x ls": "looks like an option",
    "ls; +x": "looks like an option",
    "'' x": "is empty",
    "export PATH": "more than plain commands to the grammar",
    "ls 'a": "single quote is not closed",
    'ls "a': "double quote is not closed",
    "ls &&": "nothing follows '&&'",
    "ls |\n": "nothing follows '|'",
    "&& ls": "nothing stands before '&&'",
    "ls ;; ls": "nothing stands before ';'",
    "ls\n; ls": "nothing stands before ';'",
    "ls a#b": "# inside of a word",
    "ls é": "outside of quotes",
    "lѕ": "outside of quotes",
    "ls\r\n": "U+000D",
    "ls \x00": "U+0000",
    "ls '\x1b[0m'": "U+001B",
    "ls '\u200b'": "U+200B",
    "ls '\u202e'": "U+202E",
    "ls '\u00a0'": "U+00A0",
    "ls '\ufe0f'": "U+FE0F",
    "ls '\U000e0041'": "U+E0041",
    "ls '\u3164'": "U+3164",
    "ls '\udc80'": "U+DC80",
    "ls\u2028ls": "U+2028",
    "ls\x85ls": "U+0085",
    "ls\x7f": "U+007F",
}


@pytest.mark.parametrize(("line", "commands"), PLAIN.items(), ids=map(ascii, PLAIN))
def test_a_plain_line_gives_its_words(line: str, commands: tuple[tuple[str, ...], ...]) -> None:
    assert read_command(line) == PlainCommandLine(commands=commands)


@pytest.mark.parametrize(("line", "why"), UNCLEAR.items(), ids=map(ascii, UNCLEAR))
def test_any_doubt_makes_a_line_unclear_and_says_why(line: str, why: str) -> None:
    read = read_command(line)
    assert isinstance(read, UnclearCommandLine)
    assert why in read.reason


def test_a_line_has_a_greatest_length() -> None:
    fits = f"ls {'x' * (LONGEST_BYTES - 3)}"
    assert isinstance(read_command(fits), PlainCommandLine)
    assert read_command(f"{fits}x") == UnclearCommandLine(reason="it is longer than 8192 bytes")
    in_bytes = f"ls '{'é' * (LONGEST_BYTES // 2)}'"
    assert read_command(in_bytes) == UnclearCommandLine(reason="it is longer than 8192 bytes")


def test_a_line_has_a_greatest_number_of_commands() -> None:
    assert isinstance(read_command("ls;" * MOST_COMMANDS), PlainCommandLine)
    assert read_command("ls;" * (MOST_COMMANDS + 1)) == UnclearCommandLine(
        reason="it runs more than 100 commands"
    )
