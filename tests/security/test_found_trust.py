"""Ways in which a folder that nobody trusts could act, or its secrets leave; each was open once."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from agent_core.kernel.redaction.redactor import Redactor
from agent_core.resources.instructions import (
    UnusableInstructions,
    load_context_files,
    read_instructions,
)
from agent_core.workspace.permissions.policy import git_starts_programs
from agent_core.workspace.sandbox.environment import scrubbed
from agent_core.workspace.sandbox.guards.secret_places import secret_places
from tests.support.harness.isolation import TillerDirs
from tests.support.provider import LoopbackProvider
from tests.support.review.reviewing import Reviewing, says
from tests.support.workspace.repositories import Repository
from tiller_server.review.git.revisions import WORKING_TREE

ENV = {"PATH": os.defpath, "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}
STARTING_SETTINGS = {
    "a command of the collection of garbage": ("gc.recentObjectsHook", "touch x"),
    "a strategy of a branch": ("branch.main.mergeOptions", "-s evil"),
    "a strategy of a pull": ("pull.twohead", "evil"),
    "a strategy of a pull of several": ("pull.octopus", "evil"),
    "a helper before the address": ("remote.origin.url", "evil::x"),
    "a helper as the scheme": ("remote.origin.url", "evil://host/x"),
    "a helper of a push": ("remote.origin.pushUrl", "evil::x"),
    "a helper of a branch": ("branch.main.remote", "evil::x"),
}


def git(folder: Path, *words: str) -> None:
    _ = subprocess.run(["git", *words], cwd=folder, env=ENV, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    return root


@pytest.mark.parametrize("case", STARTING_SETTINGS)
def test_a_setting_that_makes_git_start_a_program_is_seen(repository: Path, case: str) -> None:
    assert not git_starts_programs(repository)
    git(repository, "config", *STARTING_SETTINGS[case])
    assert git_starts_programs(repository)


def test_a_quoted_address_that_names_a_program_is_seen(repository: Path) -> None:
    with (repository / ".git/config").open("a") as config:
        _ = config.write('[remote "origin"]\n\turl = "evil":\\":x\n')
    assert git_starts_programs(repository)


@pytest.mark.parametrize("folder", ["remotes", "branches"])
def test_an_address_in_a_file_of_its_own_is_seen(repository: Path, folder: str) -> None:
    (repository / ".git" / folder).mkdir(exist_ok=True)
    assert not git_starts_programs(repository)
    _ = (repository / ".git" / folder / "origin").write_text("URL: evil::x\n")
    assert git_starts_programs(repository)


@pytest.mark.parametrize(
    "address",
    ["https://[::1]/x.git", "git@example.com:a/b.git", "ssh://git@[::1]:22/x", "../x", "C:/x"],
)
def test_an_address_that_names_no_program_is_harmless(repository: Path, address: str) -> None:
    git(repository, "config", "remote.origin.url", address)
    assert not git_starts_programs(repository)


SECRET = "DATABASE_PASSWORD=sw0rdf1sh\n"


async def test_a_link_for_instructions_shows_the_model_no_file_of_secrets(tmp_path: Path) -> None:
    root, config = tmp_path / "workspace", tmp_path / "config"
    root.mkdir()
    config.mkdir()
    _ = (root / ".env").write_text(SECRET)
    (root / "AGENTS.md").symlink_to(".env")
    read = await load_context_files(config=config, root=root, project_trusted=True)
    assert read.files == ()
    assert any("AGENTS.md" in problem and "secrets" in problem for problem in read.problems)


def test_a_skill_that_is_a_link_shows_the_model_no_file_of_secrets(tmp_path: Path) -> None:
    skill = tmp_path / "skills" / "one"
    skill.mkdir(parents=True)
    _ = (skill / ".env").write_text(SECRET)
    (skill / "SKILL.md").symlink_to(".env")
    read = read_instructions(skill / "SKILL.md", within=skill, instruction_names=(), owners=None)
    assert isinstance(read, UnusableInstructions)


async def test_a_review_shows_the_model_no_file_of_secrets(
    tmp_path: Path, tiller_dirs: TillerDirs
) -> None:
    repository = Repository(tmp_path / "project")
    repository.commit("Begin", {".gitignore": ".env\n", "a.py": "A = 1\n", "id_rsa": "old-key\n"})
    repository.write(".gitignore", "")
    repository.write(".env", SECRET)
    repository.write("id_rsa", "new-key\n")
    repository.write("a.py", "A = 2\n")
    with LoopbackProvider() as provider:
        reviewing = Reviewing(repository=repository, provider=provider, dirs=tiller_dirs)
        reviewing.configure()
        made = await reviewing.review(says("."), base="HEAD", head=WORKING_TREE)
        told = "".join(map(reviewing.told, range(len(provider.requests))))
    assert "A = 2" in told
    assert [word for word in ("sw0rdf1sh", "old-key", "new-key") if word in told] == []
    assert {one.path for one in made.left_out if "secrets" in one.reason} == {".env", "id_rsa"}


NAMES_WITHOUT_END = ("password=", "sessionid=", "token:")


@pytest.mark.parametrize("name", NAMES_WITHOUT_END)
def test_names_of_secrets_without_end_are_looked_through_in_linear_time(name: str) -> None:
    """Each delta of such a word was looked through with all that was kept back before it."""
    spent_s: dict[int, float] = {}
    for size in (6_000, 24_000):
        stream = Redactor().stream()
        text = (name * size)[:size]
        began_s = time.process_time()
        pieces = [stream.push(text[place : place + 100]) for place in range(0, size, 100)]
        said = "".join((*pieces, stream.finish()))
        spent_s[size] = time.process_time() - began_s
        assert said == Redactor().text(text)
    assert spent_s[24_000] < 10 * spent_s[6_000] + 1.0


def test_a_secret_behind_a_long_word_is_found_in_a_stream() -> None:
    stream = Redactor().stream()
    text = "password=" * 280 + " then ghp_" + "aB3" * 12 + " and on"
    pieces = [stream.push(text[place : place + 37]) for place in range(0, len(text), 37)]
    said = "".join((*pieces, stream.finish()))
    assert "ghp_aB3" not in said
    assert said.endswith(" and on")


LOGINS = {
    "without a scheme": ("HTTP_PROXY", "bob:sw0rdf1sh@proxy:8080"),
    "with half of one": ("https_proxy", "//bob:sw0rdf1sh@proxy:1"),
    "with a slash in the password": ("PIP_INDEX_URL", "https://bob:sw0rd/f1sh@host/simple"),
    "a token for a proxy": ("ALL_PROXY", "socks5h://sw0rdf1sh@host"),
}


@pytest.mark.parametrize("case", LOGINS)
def test_an_address_with_a_password_reaches_no_command(case: str) -> None:
    name, value = LOGINS[case]
    assert scrubbed({name: value}).env == {}


def test_addresses_and_paths_without_a_password_reach_commands() -> None:
    env = {
        "HTTP_PROXY": "http://proxy:8080",
        "NO_PROXY": "localhost,10.0.0.1",
        "PYTHONPATH": "src:/opt/homebrew/opt/python@3.11/lib",
        "GOPROXY": "https://proxy.golang.org,direct",
    }
    assert scrubbed(env).env == env


KEY_FILES = {
    "uv": ("HOME", ".local/share/uv/credentials"),
    "cargo": ("CARGO_HOME", "credentials.toml"),
    "gradle": ("GRADLE_USER_HOME", "gradle.properties"),
    "composer": ("COMPOSER_HOME", "auth.json"),
    "settings": ("XDG_CONFIG_HOME", "gh"),
    "data": ("XDG_DATA_HOME", "uv/credentials"),
    "caches": ("XDG_CACHE_HOME", "huggingface/token"),
}


@pytest.mark.parametrize("case", KEY_FILES)
def test_keys_are_found_where_a_variable_says_that_they_lie(tmp_path: Path, case: str) -> None:
    variable, name = KEY_FILES[case]
    home, moved = tmp_path / "home", tmp_path / "moved"
    home.mkdir()
    key = (home if variable == "HOME" else moved) / name
    key.parent.mkdir(parents=True)
    if key.suffix or key.name == "token":
        _ = key.write_text(SECRET)
    else:
        key.mkdir()
    env = {variable: str(moved)}
    found = secret_places(homes=[home], env=env, own=[])
    assert key.resolve() in (*found.folders, *found.files)
