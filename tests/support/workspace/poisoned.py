"""Repositories whose own files name programs, in every way that git knows, and the commands of git that start them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.workspace.repositories import Repository

TEXT = "one\n"


@dataclass(frozen=True, kw_only=True)
class Poison:
    """One way in which a repository names a program."""

    plant: Callable[[Repository, str], None]
    """Takes a command for the shell that leaves the mark and ends well."""
    control: tuple[str, ...] | None = None
    """A command of plain git that starts the program; None: git starts it nowhere on a plain work tree."""


def configured(*settings: tuple[str, str]) -> Callable[[Repository, str], None]:
    """Plant settings; `{}` is the command."""

    def plant(repository: Repository, command: str) -> None:
        for name, value in settings:
            repository.git("config", "--add", name, value.replace("{}", command))

    return plant


def included(where: str, inner: str) -> Callable[[Repository, str], None]:
    """Plant settings in another file, which the configuration includes by a key."""

    def plant(repository: Repository, command: str) -> None:
        quoted = command.replace('"', '\\"')
        (repository.root / ".git" / "more").write_text(inner.replace("{}", quoted), "utf-8")
        repository.git("config", where, "more")

    return plant


def worktree_config(repository: Repository, command: str) -> None:
    repository.git("config", "core.repositoryformatversion", "1")
    repository.git("config", "extensions.worktreeConfig", "true")
    repository.git("config", "--worktree", "filter.e.clean", f"{command}; cat")


def common_folder(repository: Repository, command: str) -> None:
    other = Repository(repository.root.parent / "other")
    other.git("config", "filter.e.clean", f"{command}; cat")
    for name in ("objects", "refs"):
        repository.git("-C", str(other.root), "config", "core.bare", "false")
        source = repository.root / ".git" / name
        target = other.root / ".git" / name
        for path in source.rglob("*"):
            if path.is_file():
                copy = target / path.relative_to(source)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(path.read_bytes())
    (repository.root / ".git" / "commondir").write_text(f"{other.root}/.git\n", "utf-8")


def attributes_elsewhere(repository: Repository, command: str) -> None:
    (repository.root / ".git" / "more").write_text("b.py filter=other\n", "utf-8")
    repository.git("config", "core.attributesFile", ".git/more")
    repository.git("config", "filter.other.clean", f"{command}; cat")


def hooks(repository: Repository, command: str) -> None:
    for name in ("post-index-change", "reference-transaction", "post-checkout", "pre-commit"):
        hook = repository.root / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{command}\n", "utf-8")
        hook.chmod(0o755)


def hooks_elsewhere(repository: Repository, command: str) -> None:
    hooks(repository, command)
    (repository.root / ".git" / "hooks").rename(repository.root / "tools")
    repository.git("config", "core.hooksPath", "tools")


def promisor(repository: Repository, command: str) -> None:
    """Take away objects that the review and the lookout want, and name a remote that is asked for them."""
    for name, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "evil",
        "remote.evil.url": str(repository.root),
        "remote.evil.promisor": "true",
        "remote.evil.uploadpack": f"{command}; git-upload-pack",
    }.items():
        repository.git("config", name, value)
    for name in ("main:a.txt", "HEAD:a.txt", "main:b.py"):
        blob = repository.git("rev-parse", name)
        loose = repository.root / ".git" / "objects" / blob[:2] / blob[2:]
        loose.unlink(missing_ok=True)


def ssh(repository: Repository, command: str) -> None:
    promisor(repository, "true")
    repository.git("config", "remote.evil.url", "ssh://example.invalid/x")
    repository.git("config", "core.sshCommand", f"{command}; false")


def external_transport(repository: Repository, command: str) -> None:
    promisor(repository, "true")
    script = repository.root / ".git" / "transport"
    script.write_text(f"#!/bin/sh\n{command}\n", "utf-8")
    script.chmod(0o755)
    repository.git("config", "remote.evil.url", f"ext::{script}")
    repository.git("config", "protocol.ext.allow", "always")


def submodule(key: str) -> Callable[[Repository, str], None]:
    """Plant a submodule whose own configuration names the program."""

    def plant(repository: Repository, command: str) -> None:
        other = Repository(repository.root.parent / "other")
        other.commit("Begin", {"s.txt": TEXT, ".gitattributes": "*.txt filter=e\n"})
        repository.git(
            "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.root), "sub"
        )  # fmt: skip
        repository.git("commit", "--quiet", "--message", "A submodule", "--", "sub", ".gitmodules")
        inner = repository.root / "sub"
        repository.git("-C", str(inner), "config", key, f"{command}; cat")
        (inner / "s.txt").write_text("two\n", "utf-8")

    return plant


def nested(repository: Repository, command: str) -> None:
    """Plant a repository in a folder that git does not know yet."""
    inner = Repository(repository.root / "inner")
    inner.commit("Begin", {"s.txt": TEXT, ".gitattributes": "*.txt filter=e\n"})
    inner.git("config", "core.fsmonitor", f"{command}; false")
    inner.git("config", "filter.e.clean", f"{command}; cat")
    inner.write("s.txt", "two\n")


STATUS, DIFF, ADD = ("status",), ("diff", "main"), ("add", "--all")
FETCH = ("cat-file", "-p", "main:a.txt")

POISONS: Mapping[str, Poison] = {
    "filter.clean": Poison(plant=configured(("filter.e.clean", "{}; cat")), control=ADD),
    "filter.process": Poison(plant=configured(("filter.e.process", "{}; false")), control=ADD),
    "filter.smudge": Poison(
        plant=configured(("filter.e.smudge", "{}; cat")),
        control=("checkout", "--force", "main", "--", "a.txt"),
    ),
    "a filter in an included file": Poison(
        plant=included("include.path", '[filter "e"]\n\tclean = "{}; cat"\n'), control=ADD
    ),
    "a filter in a file that is included for some folders": Poison(
        plant=included("includeIf.gitdir:**.path", '[filter "e"]\n\tclean = "{}; cat"\n'),
        control=ADD,
    ),
    "a filter in the configuration of the work tree": Poison(plant=worktree_config, control=ADD),
    "a filter in a common folder": Poison(plant=common_folder, control=ADD),
    "a filter by attributes elsewhere": Poison(plant=attributes_elsewhere, control=ADD),
    "core.fsmonitor": Poison(plant=configured(("core.fsmonitor", "{}; false")), control=STATUS),
    "diff.external": Poison(plant=configured(("diff.external", "{}; true")), control=DIFF),
    "diff.command": Poison(plant=configured(("diff.e.command", "{}; true")), control=DIFF),
    "diff.textconv": Poison(plant=configured(("diff.e.textconv", "{}; cat")), control=DIFF),
    "merge.driver": Poison(plant=configured(("merge.e.driver", "{}; true"))),
    "hooks": Poison(plant=hooks, control=ADD),
    "hooks elsewhere": Poison(plant=hooks_elsewhere, control=ADD),
    "an alias": Poison(plant=configured(("alias.mine", "!{}")), control=("mine",)),
    "an alias of a command": Poison(plant=configured(("alias.diff", "!{}"), ("alias.add", "!{}"))),
    "gpg.program": Poison(
        plant=configured(("gpg.program", "{}; true"), ("log.showSignature", "true"))
    ),
    "core.pager": Poison(
        plant=configured(("core.pager", "{}; cat"), ("pager.diff", "{}; cat"), ("pager.log", "true"))
    ),
    "core.askPass": Poison(
        plant=configured(("core.askPass", "{}"), ("credential.helper", "!{}"))
    ),
    "core.alternateRefsCommand": Poison(plant=configured(("core.alternateRefsCommand", "{}"))),
    "a promisor's uploadpack": Poison(plant=promisor, control=FETCH),
    "core.sshCommand": Poison(plant=ssh, control=FETCH),
    "an external transport": Poison(plant=external_transport, control=FETCH),
    "core.fsmonitor of a submodule": Poison(plant=submodule("core.fsmonitor"), control=STATUS),
    "a filter of a submodule": Poison(plant=submodule("filter.e.clean"), control=ADD),
    "a repository that is not known": Poison(plant=nested, control=("-C", "inner", "status")),
}  # fmt: skip


def poisoned(root: Path, name: str, mark: Path) -> Repository:
    """Make a repository with a branch, files that are not committed, and one poison."""
    repository = Repository(root)
    repository.commit(
        "Begin",
        {"a.txt": TEXT, "b.py": "B = 1\n", ".gitattributes": "*.txt filter=e diff=e merge=e\n"},
    )
    repository.git("checkout", "--quiet", "-b", "elsewhere")
    repository.commit("Other", {"a.txt": "four\n", "b.py": "B = 4\n"})
    repository.git("checkout", "--quiet", "-b", "feature", "main")
    repository.commit("Change", {"a.txt": "two\n", "b.py": "B = 2\n"})
    repository.write("a.txt", "three\n")
    repository.write("b.py", "B = 3\n")
    POISONS[name].plant(repository, f"touch {mark}")
    mark.unlink(missing_ok=True)
    return repository
