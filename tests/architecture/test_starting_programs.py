"""Which files start programs is known, and none of them starts git: a repository says what git runs."""

import ast
from collections.abc import Iterator, Mapping

from tests.support.sources import PRODUCT, Source, sources

STARTERS = frozenset(
    {"Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"}
    | {"open_process", "run_process", "create_subprocess_exec", "create_subprocess_shell"}
    | {"system", "popen", "posix_spawn", "posix_spawnp", "execv", "execve", "execvp", "execvpe", "execl", "execlp"}
    | {"spawnv", "spawnve", "spawnvp", "spawnl", "spawnlp", "fork", "forkpty", "startfile"}
)  # fmt: skip
OF = frozenset({"subprocess", "anyio", "asyncio", "os", "pty"})
"""Modules of which these are meant; a `run` of something of ours is none."""

# Path → what it starts, in a few words.
STARTING: Mapping[str, str] = {
    "agent_core/providers/adapters/local/server.py": "the server of a local model",
    "agent_core/providers/setting_values.py": "a command of the user's own settings that gives a key",
    "agent_core/workspace/adapters/processes.py": "what tools start",
    "agent_core/workspace/sandbox/landlock.py": "our launcher, to try it",
    "agent_core/workspace/sandbox/landlock_launcher.py": "becomes the command that it contains",
    "agent_core/workspace/sandbox/probe.py": "bubblewrap, to try it",
    "server/cli/demo.py": "the demonstration",
    "server/cli/demo_editor.py": "our own server",
    "server/cli/doctor_checks.py": "programs, with --version",
    "server/cli/trace_record.py": "the server that the user names, to listen in",
    "server/cli/trace_replay.py": "our own server, or the one that the user names",
    "server/daemon/starting.py": "our own daemon",
    "server/review/git.py": "git, for a review",
}
# "path: line of code" → why it is no git that could be talked into something.
WITH_GIT: Mapping[str, str] = {
    "agent_core/changes/adapters/git_objects.py: ('git'": "`cat-file` reads objects and starts nothing",
    "agent_core/changes/committed.py: ('git'": "`rev-list`, `ls-tree` and `rev-parse` read objects and start nothing",
    "server/review/git.py: ['git', *HARMLESS": "no hook, filter, monitor or external diff of the repository is started; tests hold it to that",
    "server/cli/doctor_checks.py: _program('git'": "`git --version` opens no repository",
}


def test_only_these_files_start_programs() -> None:
    found = {source.path for source in sources(*PRODUCT) if any(_starts(source))}
    assert found == set(STARTING)


def test_nothing_of_ours_starts_git() -> None:
    found = [f"{source.path}: {code}" for source in sources(*PRODUCT) for code in _with_git(source)]
    assert [one for one in found if not one.startswith(tuple(WITH_GIT))] == []
    assert [known for known in WITH_GIT if not any(one.startswith(known) for one in found)] == []


def test_git_is_found_in_each_form() -> None:
    text = "run(['git', 'x'])\nstart(('/usr/bin/git',))\nfind('git')\nf(['a', 'git'])\nf({'git'})\ng('git x')"
    source = Source(path="x", text=text, tree=ast.parse(text))
    assert [code.partition(",")[0] for code in _with_git(source)] == [
        "find('git')", "g('git x')", "['git'", "('/usr/bin/git'",
    ]  # fmt: skip


def _starts(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in OF:
                if name in STARTERS and not (module in {"anyio", "asyncio"} and name == "run"):
                    yield name
            case ast.ImportFrom(module=module, names=names) if module in OF:
                yield from (one.name for one in names if one.name in STARTERS and one.name != "run")
            case _:
                pass


def _with_git(source: Source) -> Iterator[str]:
    """Give what begins with the word git: a list of words, or the first argument of a call."""
    for node in ast.walk(source.tree):
        match node:
            case (
                ast.List(elts=[ast.Constant(value=str(word)), *_])
                | ast.Tuple(elts=[ast.Constant(value=str(word)), *_])
                | ast.Call(args=[ast.Constant(value=str(word)), *_])
            ) if word == "git" or word.endswith("/git") or word.startswith("git "):
                yield ast.unparse(node)
            case _:
                pass
