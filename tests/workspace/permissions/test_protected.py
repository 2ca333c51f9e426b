"""Files that execute code, steer an agent or hold secrets are told by their names, however those are spelt."""

import os
from pathlib import Path

import pytest

from agent_core.workspace.permissions.protected_names import (
    PROTECTED_FOLDERS,
    PROTECTED_NAMES,
    PROTECTED_PATTERNS,
    PUBLIC_ENDINGS,
    SECRET_FOLDERS,
    SECRET_NAMES,
    SECRET_PATTERNS,
    folded,
    is_protected,
    is_secret,
)
from tests.workspace.files.hostile import all_cases, make_fixture

ROOT = Path("/home/u/ws")
# Written out once more: a name that goes from the lists goes by intention.
FOLDERS = """
.git .hg .jj .svn .vscode .vs .idea .fleet .zed .nvim .vim .helix .nova .theia .husky .githooks .lefthook .devcontainer .github/workflows
.github/actions .github/instructions .github/prompts .github/agents .github/chatmodes .github/hooks .github/skills
.gitea/workflows .forgejo/workflows .circleci .buildkite .woodpecker .teamcity .tekton .semaphore .cargo .mvn .yarn
.direnv .mise .config/mise .tiller .agent .agents .aider .augment .amazonq .claude .claude-plugin .cline .clinerules .codex .continue
.crush .cursor .factory .gemini .goose .junie .kilocode .kiro .opencode .openhands .pi .qwen .roo .trae .windsurf .ssh .gnupg
.aws .azure .docker .kube
"""
NAMES = """
AGENTS.md AGENTS.override.md AGENT.md CLAUDE.md CLAUDE.local.md GEMINI.md QWEN.md CRUSH.md WARP.md copilot-instructions.md
.cursorrules .goosehints .roorules .windsurfrules .rules .roomodes .kilocodemodes .continuerules .mcp.json .claude.json .aider.conf.yml opencode.json
opencode.jsonc .opencode.json crush.json .crush.json .gitattributes .gitconfig .gitmodules .git-credentials .hgrc .lfsconfig .pre-commit-config.yaml
.pre-commit-config.yml .pre-commit-hooks.yaml lefthook.yml lefthook.yaml .lefthook.yml .lefthook.yaml
lefthook-local.yml lefthook-local.yaml .lefthook-local.yml prek.toml hk.pkl .overcommit.yml captainhook.json grumphp.yml .huskyrc .lintstagedrc
.gitlab-ci.yml .travis.yml .drone.yml .appveyor.yml appveyor.yml azure-pipelines.yml azure-pipelines.yaml bitbucket-pipelines.yml
cloudbuild.yaml cloudbuild.yml buildspec.yml .woodpecker.yml .woodpecker.yaml .cirrus.yml .cirrus.star .build.yml
.readthedocs.yml .readthedocs.yaml Jenkinsfile dependabot.yml renovate.json renovate.json5 .renovaterc .renovaterc.json CODEOWNERS .bashrc .bash_aliases .bash_login .bash_logout .bash_profile .profile
.zshrc .zshenv .zlogin .zlogout .zprofile .kshrc .mkshrc .shrc .cshrc .tcshrc .login .logout .xprofile
.xinitrc .xsession .xsessionrc .pam_environment config.fish .inputrc .envrc .rvmrc .autoenv .autoenv.zsh .env.mise.toml .mise.toml
mise.toml .rtx.toml .tool-versions rust-toolchain rust-toolchain.toml .ripgreprc .curlrc .wgetrc .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pnpmfile.mjs
bunfig.toml .pypirc .condarc pip.conf .gdbinit .lldbinit .pdbrc .pythonrc .pythonrc.py sitecustomize.py
usercustomize.py .irbrc .pryrc .Rprofile .perltidyrc .screenrc .tmux.conf .vimrc .gvimrc .exrc .nexrc .nvimrc
.nvim.lua .lazy.lua .lvimrc .ycm_extra_conf.py .ideavimrc .emacs .dir-locals.el .dir-locals-2.el .sublime-project .devcontainer.json .gitpod.yml
"""
SECRETS = """
.dockercfg .env .git-credentials .htpasswd .my.cnf .netrc .npmrc .pgpass .pypirc .s3cfg .secrets.toml .terraformrc
.vault-token _netrc application_default_credentials.json auth.json credentials.json id_dsa id_ecdsa id_ed25519
id_ed25519_sk id_rsa kubeconfig secrets.json secrets.toml secrets.yaml secrets.yml service-account.json
.aws .azure .gnupg .kube .ssh .env.* *.env *.pem *.key *.p12
*.pfx *.jks *.keystore *.kdbx *.ppk *.tfstate *.tfvars *.tfvars.json example sample template dist defaults schema pub
"""
PATTERNS = """
*.code-workspace *.sublime-project .huskyrc.* .lintstagedrc.* lefthook.json* lefthook.toml lefthook-local.* .lefthook.* .lefthook-local.* mise.*.toml .mise.*.toml .aider* git~[0-9]
"""


def why(path: str) -> str | None:
    return is_protected(ROOT / path, roots=(ROOT,))


def test_each_row_of_the_corpus_asks_when_it_should(tmp_path: Path) -> None:
    base = Path(os.path.realpath(tmp_path))
    make_fixture(base)
    root = base / "ws"
    wrong: list[str] = []
    for case in all_cases():
        if case["platform"] == "win32" or case["expect"] not in {"ask", "allow"}:
            continue
        path = Path(os.path.realpath(root / case["path"].replace("{B}", str(base))))
        judge = is_secret if case["op"] == "read" else is_protected
        if (judge(path, roots=(root,)) is not None) is not (case["expect"] == "ask"):
            wrong.append(f"{case['id']} {case['op']} {case['path']!r}")
    assert wrong == []


def test_the_lists_are_these() -> None:
    assert [*PROTECTED_FOLDERS] == FOLDERS.split()
    assert [*PROTECTED_NAMES] == NAMES.split()
    assert [*PROTECTED_PATTERNS] == PATTERNS.split()
    secrets = (*sorted(SECRET_NAMES), *sorted(SECRET_FOLDERS), *SECRET_PATTERNS, *PUBLIC_ENDINGS)
    assert [*secrets] == SECRETS.split()


@pytest.mark.parametrize("name", PROTECTED_FOLDERS)
@pytest.mark.parametrize("above", ["", "src/", "a/b/c/"])
def test_a_protected_folder_is_so_at_any_depth_with_what_is_in_it(name: str, above: str) -> None:
    expected = f"{name.casefold()} is protected: {PROTECTED_FOLDERS[name]}"
    assert why(f"{above}{name}") == expected
    assert why(f"{above}{name}/deep/er") == expected


@pytest.mark.parametrize("name", PROTECTED_NAMES)
@pytest.mark.parametrize("above", ["", "src/"])
def test_a_protected_file_is_so_at_any_depth(name: str, above: str) -> None:
    assert why(f"{above}{name}") == f"{name.casefold()} is protected: {PROTECTED_NAMES[name]}"


@pytest.mark.parametrize(
    "spelling",
    [
        ".GIT/config",
        ".Git/config",
        ".g\u200cit/config",
        "\ufeff.git/config",
        ".git\u200d/config",
        ".git\ufe0f/config",
        ".gi\x00t/config",
        "\uff0egit/config",
        ".g\u2071t/config",
        ".git./config",
        ".git /config",
        ".git. ./config",
        ".git::$INDEX_ALLOCATION/config",
        "git~1/config",
        "GIT~1/config",
        "src/.git",
        ".git",
    ],
)
def test_every_spelling_that_some_disk_takes_for_git_is_git(spelling: str) -> None:
    assert "git runs programs" in (why(spelling) or "")


@pytest.mark.parametrize(
    "path",
    [
        "src/a.py",
        "README.md",
        "package.json",
        "pyproject.toml",
        "Makefile",
        ".gitignore",
        ".github/ISSUE_TEMPLATE.md",
        "workflows/ci.yml",
        "agents.md/x.txt",
        "my.git/x",
        "git/x",
        ".env.example",
        "keys.pub",
        "envrc",
        "..",
        ".",
    ],
)
def test_what_is_ordinary_is_left_alone(path: str) -> None:
    assert why(path) is None


@pytest.mark.parametrize(
    "path",
    ["x.code-workspace", "sub/X.CODE-WORKSPACE", ".aider.chat.history.md", ".mise.local.toml"],
)
def test_names_that_differ_are_told_by_their_pattern(path: str) -> None:
    assert why(path) is not None


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "sub/.ENV",
        ".env.local",
        "prod.env",
        "id_rsa",
        "a.pem",
        ".ssh/config",
        ".netrc",
        "tls.key",
    ],
)
def test_what_holds_secrets_is_not_even_read_without_asking(path: str) -> None:
    assert is_secret(ROOT / path, roots=(ROOT,)) is not None
    assert why(path) is not None


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        "AGENTS.md",
        ".env.example",
        ".env.sample",
        "key.pem.template",
        "id_rsa.pub",
        "a.py",
    ],
)
def test_other_files_may_be_read(path: str) -> None:
    assert is_secret(ROOT / path, roots=(ROOT,)) is None


def test_what_stands_above_a_root_does_not_count() -> None:
    root = Path("/home/u/.vscode/extensions/mine")
    assert is_protected(root / "a.py", roots=(root,)) is None
    assert is_secret(Path("/srv/.ssh/work/a"), roots=(Path("/srv/.ssh/work"),)) is None


def test_a_root_that_is_a_protected_folder_itself_is_protected() -> None:
    root = Path("/home/u/ws/.git")
    assert is_protected(root / "config", roots=(root,)) is not None
    assert is_protected(root, roots=(root,)) is not None


def test_a_root_inside_a_protected_folder_of_another_does_not_free_it() -> None:
    inner = ROOT / ".git/modules/sub"
    assert is_protected(inner / "a", roots=(ROOT, inner)) is not None
    assert is_protected(inner / "a", roots=(inner, ROOT)) is not None


def test_a_name_of_two_is_found_wherever_it_stands() -> None:
    assert why("a/b/.github/workflows") is not None
    assert why(".github") is None
    assert why(".github/x/workflows") is None


def test_outside_of_all_roots_every_folder_counts() -> None:
    assert is_protected(Path("/home/u/.bashrc"), roots=(ROOT,)) is not None
    assert is_protected(Path("/.ssh/x/y"), roots=()) is not None
    assert is_protected(Path("/etc/hosts"), roots=(ROOT,)) is None
    assert is_protected(Path("/"), roots=(ROOT,)) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("A.Py", "a.py"),
        ("...", "..."),
        (" ", " "),
        ("\u200b", ""),
        ("STRASSE", "strasse"),
        (":x", ":x"),
    ],
)
def test_a_name_is_folded_and_never_lost(name: str, expected: str) -> None:
    assert folded(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        *(".env~", ".env.bak", "id_rsa~", ".id_rsa.swp", ".env.swp", ".netrc.swp", "server.key.bak", ".netrc.old"),
        *("id_rsa.bak~", "#.env#", "server.pem.~2~", "ID_RSA.OLD", "id_ed25519.bak2", "auth.json.orig"),
        *("id_rsa copy", "secrets.toml", "terraform.tfstate", "terraform.tfstate.backup", "prod.tfvars"),
        *("prod.auto.tfvars.json", "deep/.docker/config.json", ".docker/config.json~", "credentials.json.tmp"),
    ],
)  # fmt: skip
def test_a_copy_of_a_secret_is_one(name: str) -> None:
    assert is_secret(ROOT / name, roots=(ROOT,)) is not None
    assert why(name) is not None


@pytest.mark.parametrize(
    "name",
    [
        *(".env.example", ".env.sample", ".env.template", "id_rsa.pub.bak", "id_rsa.pub~", "main.py~"),
        *("prod.tfvars.example", "config.json", "docker/config.json", ".docker/Dockerfile", "notes.bak"),
        *(".main.py.swp", "#main.py#", "~", ".bak", "##", "main copy", "copy", "variables.tf", "old"),
    ],
)  # fmt: skip
def test_a_copy_of_anything_else_is_none(name: str) -> None:
    assert is_secret(ROOT / name, roots=(ROOT,)) is None
