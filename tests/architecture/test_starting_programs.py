"""Which files start programs is known, and one alone says how git is started: a repository says what git runs."""

import ast
from collections.abc import Iterator, Mapping

from tests.support.harness.sources import PRODUCT, Source, sources

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
    "agent_core/providers/auth/credentials.py": "a command of the user's own settings that gives a key",
    "agent_core/workspace/git/client.py": "git, for reviews and worktrees",
    "agent_core/workspace/processes/launch.py": "what tools start",
    "agent_core/workspace/sandbox/backends/landlock.py": "our launcher, to try it",
    "agent_core/workspace/sandbox/backends/landlock_launcher.py": "becomes the command that it contains",
    "agent_core/workspace/sandbox/selection.py": "bubblewrap, to try it",
    "server/tiller_server/cli/channels/platform.py": "forks itself, to read the settings",
    "server/tiller_server/cli/chat/project_commands.py": "the program that fills the clipboard",
    "server/tiller_server/cli/terminal/pictures.py": "the program that reads the picture of the clipboard",
    "server/tiller_server/cli/terminal/tool_outputs.py": "the pager of the user's terminal",
    "server/tiller_server/cli/subcommands/demo.py": "the demonstration",
    "server/tiller_server/cli/demo/editor.py": "our own server",
    "server/tiller_server/cli/doctor/system.py": "programs, with --version",
    "server/tiller_server/cli/extension_packages/check.py": "the process that loads a package to check it",
    "server/tiller_server/cli/extension_packages/source.py": "git, to fetch a package",
    "server/tiller_server/cli/run/daemon_client.py": "the same run again, in a process of its own",
    "server/tiller_server/cli/run/template.py": "forks itself, for a run of the user's",
    "server/tiller_server/cli/trace/recorder.py": "the server that the user names, to listen in",
    "server/tiller_server/cli/trace/replay.py": "our own server, or the one that the user names",
    "server/tiller_server/daemon/runs.py": "the process that runs are forked from",
    "server/tiller_server/daemon/shim/discovery.py": "our own daemon",
    "server/tiller_server/evaluation/agent_process.py": "our own runs and reviews, as a user would",
    "server/tiller_server/evaluation/tasks/repositories.py": "git, to make the repositories of tasks",
}
# "path: line of code" → why it starts git beside `agent_core.workspace.git.command`, or does not start it at all.
WITH_GIT: Mapping[str, str] = {
    "server/tiller_server/cli/doctor/system.py: _program('git'": "`git --version` opens no repository, and comes from outside of the workspace",
}
LOOKING_UP: Mapping[str, str] = {
    "agent_core/workspace/sandbox/survey.py": "finds what is started contained",
    "server/tiller_server/cli/doctor/system.py": "tells of a program that lies in the workspace and is not used",
    "server/tiller_server/cli/doctor/mcp.py": "tells whether a program is there; starts none",
}
"""Files that look for programs with `shutil.which`, which knows of no workspace."""


def test_only_these_files_start_programs() -> None:
    found = {source.path for source in sources(*PRODUCT) if any(_starts(source))}
    assert found == set(STARTING)


def test_git_is_started_through_one_function_alone() -> None:
    found = [f"{source.path}: {code}" for source in sources(*PRODUCT) for code in _with_git(source)]
    assert [one for one in found if not one.startswith(tuple(WITH_GIT))] == []
    assert [known for known in WITH_GIT if not any(one.startswith(known) for one in found)] == []


def test_who_finds_git_has_the_rest_made_for_it() -> None:
    finding = {source.path for source in sources(*PRODUCT) if "find_git" in _imported(source)}
    making = {source.path for source in sources(*PRODUCT) if "git_command" in _imported(source)}
    assert (
        finding
        == making
        == {
            "agent_core/memory/history.py",
            "agent_core/workspace/git/object_command.py",
            "agent_core/workspace/git/client.py",
            "server/tiller_server/cli/extension_packages/source.py",
            "server/tiller_server/evaluation/tasks/repositories.py",
            "server/tiller_server/fleet/worker/checkouts.py",
        }
    )


def test_only_the_one_place_names_the_program_git() -> None:
    named = {
        source.path
        for source in sources(*PRODUCT)
        if any(isinstance(node, ast.Name) and node.id == "GIT" for node in ast.walk(source.tree))
        and _constant(source, "GIT") == "git"
    }
    assert (
        named
        == {
            "agent_core/workspace/git/command.py",
            "agent_core/workspace/permissions/policy/commands/prefixes.py",  # compares the word in a command
        }
    )


def test_programs_are_looked_up_where_workspaces_are_known() -> None:
    found = {source.path for source in sources(*PRODUCT) if any(_looks_up(source))}
    assert found == set(LOOKING_UP)


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


def _imported(source: Source) -> set[str]:
    return {
        alias.name
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _constant(source: Source, name: str) -> object:
    """Give the value of a constant of a module."""
    for node in source.tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == name:
            value = getattr(node, "value", None)
            return value.value if isinstance(value, ast.Constant) else None
    return None


def _looks_up(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        match node:
            case ast.Attribute(value=ast.Name(id="shutil"), attr="which"):
                yield ast.unparse(node)
            case ast.ImportFrom(module="shutil" | "distutils.spawn", names=names):
                yield from (one.name for one in names if one.name in {"which", "find_executable"})
            case _:
                pass
