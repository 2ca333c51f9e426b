"""Which names containment holds."""

from pathlib import Path

import pytest

from agent_core.workspace.permissions.protected_names import (
    PROTECTED_FOLDERS,
    PROTECTED_NAMES,
    PUBLIC_ENDINGS,
    SECRET_FOLDERS,
    SECRET_NAMES,
    is_protected,
)
from agent_core.workspace.sandbox.guards.tree_index import (
    MARKERS,
    NameKind,
    is_repository,
    kind_of,
    protected_inside,
)

KINDS: dict[str, NameKind | None] = {
    ".git": "git",
    ".GIT": "git",
    ".Git": "git",
    ".g\u200cit": "git",
    ".git.": "git",
    ".git ": "git",
    ".git::$INDEX_ALLOCATION": "git",
    "\uff0egit": "git",
    "git~1": "protected",
    "GIT~1": "protected",
    "AGENTS.md": "protected",
    "agents.MD": "protected",
    "claude.md.": "protected",
    ".vscode": "protected",
    ".VSCode": "protected",
    ".bashrc": "protected",
    "evil.code-workspace": "protected",
    "Evil.Code-Workspace": "protected",
    ".huskyrc.json": "protected",
    ".mise.local.toml": "protected",
    ".aider.chat.history.md": "protected",
    ".gitattributes": "protected",
    ".gitmodules": "protected",
    ".envrc": "protected",
    ".env": "secret",
    ".ENV": "secret",
    ".env.local": "secret",
    "prod.env": "secret",
    "server.pem": "secret",
    "id_rsa": "secret",
    "id_ed25519": "secret",
    ".env~": "secret",
    ".id_rsa.swp": "secret",
    "server.key.bak": "secret",
    "terraform.tfstate.backup": "secret",
    ".npmrc.bak": "secret",
    ".netrc": "secret",
    ".npmrc": "protected secret",
    ".pypirc": "protected secret",
    ".git-credentials": "protected secret",
    ".ssh": "protected secret",
    ".SSH": "protected secret",
    ".env.example": None,
    "main.py.bak": None,
    "server.pem.sample": None,
    "id_rsa.pub": None,
    "git": None,
    ".gitignore": None,
    "x.git": None,
    ".github": None,
    "workflows": None,
    "code.py": None,
    "README.md": None,
    "README.AGENTS.md": None,
    "HEAD": None,
    "caf\u00e9": None,
    "": None,
    ".": None,
}


@pytest.mark.parametrize("name", KINDS)
def test_a_name_is_of_one_kind(name: str) -> None:
    assert kind_of(name) == KINDS[name]


@pytest.mark.parametrize("name", sorted({*PROTECTED_FOLDERS, *PROTECTED_NAMES}))
def test_all_that_is_protected_is_held_in_any_letter_case(name: str) -> None:
    for spelt in (name, name.upper(), name.lower(), f"{name}."):
        outer, _, inner = spelt.partition("/")
        if inner:
            assert inner.casefold().rstrip(".") in protected_inside(outer)
        else:
            assert kind_of(spelt) in {"git", "protected", "protected secret"}


@pytest.mark.parametrize("name", sorted(SECRET_NAMES | SECRET_FOLDERS))
def test_all_that_is_secret_is_hidden(name: str) -> None:
    assert kind_of(name) in {"secret", "protected secret"}
    assert kind_of(name.upper()) == kind_of(name)


@pytest.mark.parametrize("ending", PUBLIC_ENDINGS)
def test_what_says_so_of_itself_is_no_secret(ending: str) -> None:
    assert kind_of(f".env.{ending}") is None


def test_pairs_are_known_by_their_first_name() -> None:
    assert {"workflows", "actions"} <= protected_inside(".GitHub")
    assert protected_inside(".gitea") == {"workflows"}
    assert protected_inside("src") == frozenset()


@pytest.mark.parametrize(
    ("names", "is_one"),
    [
        (("HEAD", "objects", "refs"), True),
        (("head", "OBJECTS", "Refs", "config", "x"), True),
        (("HEAD", "commondir"), True),
        (("HEAD", "objects"), False),
        (("HEAD", "refs"), False),
        (("objects", "refs", "commondir"), False),
        (("HEAD",), False),
        ((), False),
    ],
)
def test_a_folder_is_a_repository_by_what_is_in_it(names: tuple[str, ...], is_one: bool) -> None:
    assert is_repository(names) is is_one
    assert is_repository(name for name in names if name.lower() in MARKERS) is is_one


def test_a_name_that_is_held_alone_is_protected_for_the_file_tools_too(tmp_path: Path) -> None:
    root = tmp_path
    for name, kind in KINDS.items():
        if kind and "/" not in name:
            assert is_protected(root / name, roots=[root]) is not None
