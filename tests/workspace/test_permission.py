"""What may run without a person: by mode, and which commands are surely harmless."""

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from agent_core.workspace.permission import (
    READ_ONLY_COMMANDS,
    Allowed,
    Mode,
    ModePolicy,
    Refused,
    ToolKind,
    is_read_only,
)
from tests.support.shared import shared_path

BASH = shutil.which("bash")

HARMLESS = [
    "ls",
    "ls -la src tests",
    "cat AGENTS.md",
    "  head  -n 5 'a file.txt' ",
    'echo "git push"',
    "echo 'rm -rf x; $(date) > y'",
    'echo "it\'s"',
    "echo 'a\"b' c",
    "tail -n +3 a",
    "wc -l a b",
    "'ls' \"-l\"",
    "ls -- -rf",
]
HARMFUL = [
    # Shell syntax, in and out of quotes.
    "ls; rm x", "ls && rm x", "ls || rm x", "ls | tee x", "ls & rm x", "ls > x", "cat < x", "ls\nrm x",
    "ls\rrm x", "echo $(rm x)", "echo `rm x`", "echo ${x:=y}", 'echo "$(rm x)"', 'echo "`rm x`"',
    "echo $HOME", "echo a\\", "(ls)", "{ ls; }", "! ls", "ls *", "ls ?", "ls [a]", "ls ~root", "ls # x",
    # Quotes that pretend to hold what they do not.
    "echo \"'\" 'a' $(rm x)", "echo \"'\" 'a' `rm x`", "echo \"'\" 'a' > x", "echo '\"' $(rm x) '\"'",
    "echo \"'$(rm x)'\"", "echo 'a' \"'\" $(rm x) \"'\"", "echo \"''\" $(rm x)", "echo ''$(rm x)''",
    "echo \"a'b\" 'c'; rm \"x'y\"", "echo 'unclosed", 'echo "unclosed', "echo \"'\"';rm x", "$'rm' x", '$"rm" x',
    # Programs that change things, also behind others and under other names.
    "rm x", "date -s 2020-01-01", "date 010100002020", "file -C -m x", "printf -v 'a[$(rm x)]' y", "sort -o x y",
    "sed -i s/a/b/ x", "find . -delete", "env ls", "nice ls", "xargs rm", "sh -c ls", "bash x", "eval ls", "exec ls",
    "/opt/ls", "./ls", "FOO=1 ls", "PATH=. ls", "LS", "ls.", "-ls", "tee x", "python x", "test -v 'a[$(rm x)]'",
    # Git starts what its configuration names.
    "git status", "git diff", "git log", "git show", "git diff --output=x", "git diff --outpu=x", "git push",
    "git -c core.pager=rm status", "git log --ext-diff", "git grep -Orm x", "git ls-files",
    # What nobody sees.
    "ls \u202ex", "ls \x07", "ls\u2028rm x", "ls\x0brm x", "ls\x00", "git\u00a0status", "ls\tx", "ｌｓ",
    # Nothing at all.
    "", " ", "''", '""', "\n", "#",
]  # fmt: skip


@pytest.mark.parametrize("command", HARMLESS)
def test_a_plain_call_of_a_reading_program_is_read_only(command: str) -> None:
    assert is_read_only(command)


@pytest.mark.parametrize("command", HARMFUL)
def test_everything_else_is_not(command: str) -> None:
    assert not is_read_only(command)


def test_none_of_the_hostile_commands_that_change_something_is_read_only() -> None:
    rows = [
        json.loads(line)
        for line in shared_path("data", "hostile", "shell.jsonl").read_text("utf-8").splitlines()
    ]
    judged = {row["cmd"]: row for row in rows if is_read_only(row["cmd"])}
    # Plain reading that a rule-based policy would ask about only because no rule names it.
    reading = {"cat AGENTS.md", "echo 'rm -rf x'", 'echo "git push"'}
    wrong = {
        command: row["why"]
        for command, row in judged.items()
        if "allow" not in row["accept"] and command not in reading
    }
    assert len(rows) >= 200
    assert wrong == {}


PIECES = ("'", '"', "a", " ", "$(pwd)", "`pwd`", "\\", ";pwd;", "#", "&", "> x", "$x")


@pytest.mark.skipif(BASH is None, reason="needs bash")
@given(tail=st.lists(st.sampled_from(PIECES), max_size=10).map("".join))
def test_bash_sees_in_a_read_only_command_nothing_but_its_words(tail: str) -> None:
    command = f"echo {tail}"
    if not is_read_only(command):
        return
    ran = subprocess.run(
        [str(BASH), "--norc", "-c", command],
        capture_output=True, text=True, check=True, env={}, timeout=20,
    )  # fmt: skip
    assert (ran.stdout, ran.stderr) == (" ".join(shlex.split(tail)) + "\n", "")


def test_every_listed_program_is_a_reader_without_options_that_write() -> None:
    """Pinned: whoever adds one here must have read its manual."""
    assert " ".join(sorted(READ_ONLY_COMMANDS)) == (
        "basename cat cksum cmp cut df dirname du echo false head id ls md5sum nl pwd readlink realpath "
        "sha256sum stat tail tr true uname wc which whoami"
    )


LS, RM = {"command": "ls"}, {"command": "rm x"}


@pytest.mark.parametrize(
    ("mode", "kind", "arguments", "allowed"),
    [
        ("plan", "read", {}, True),
        ("plan", "edit", {}, False),
        ("plan", "execute", LS, False),
        ("plan", "other", {}, False),
        ("ask", "read", {}, True),
        ("ask", "edit", {}, True),
        ("ask", "execute", LS, True),
        ("ask", "execute", RM, False),
        ("ask", "execute", {}, False),
        ("ask", "execute", {"command": ["ls"]}, False),
        ("ask", "other", LS, False),
        ("auto", "edit", {}, True),
        ("auto", "execute", LS, True),
        ("auto", "execute", RM, False),
        ("yolo", "edit", {}, True),
        ("yolo", "execute", RM, True),
        ("yolo", "other", {}, True),
    ],
)
async def test_a_mode_says_what_runs(
    mode: Mode, kind: ToolKind, arguments: dict[str, object], *, allowed: bool
) -> None:
    verdict = await ModePolicy(mode).judge(tool="x", kind=kind, arguments=arguments)
    assert isinstance(verdict, Allowed) == allowed


async def test_a_refusal_tells_the_model_what_was_refused_and_the_user_how_to_allow_it() -> None:
    policy = ModePolicy("ask")
    verdict = await policy.judge(tool="bash", kind="execute", arguments=RM)
    assert isinstance(verdict, Refused)
    for words in ("'rm x'", '"permission": {"mode": "yolo"}', "tiller run --permission yolo"):
        assert words in verdict.reason
    verdict = await policy.judge(tool="mine", kind="other", arguments={})
    assert isinstance(verdict, Refused)
    assert verdict.reason.startswith("the tool 'mine' was refused")
    policy.mode = "plan"
    verdict = await policy.judge(tool="write", kind="edit", arguments={})
    assert verdict == Refused(
        reason="write is refused in plan mode: nothing may be changed. Describe the change instead."
    )
    policy.mode = "yolo"
    assert await policy.judge(tool="bash", kind="execute", arguments=RM) == Allowed()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_why_git_is_not_read_only(tmp_path: Path) -> None:
    """Shows the reason, with git itself: a file that can be edited decides what a reading command starts."""

    def git(*words: str) -> None:
        subprocess.run(
            ["git", *words], cwd=tmp_path, check=False, capture_output=True, timeout=20,
            env={"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(tmp_path)},
        )  # fmt: skip

    git("init", "--quiet", ".")
    config = tmp_path / ".git" / "config"
    config.write_text(
        config.read_text("utf-8") + "[core]\n\tfsmonitor = touch started; false\n", "utf-8"
    )
    git("status")
    assert (tmp_path / "started").exists()
