"""Which files execute code, steer an agent or hold secrets, told by their names: pure."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from pathlib import Path

PROTECTED_FOLDERS: Mapping[str, str] = {
    ".git": "git runs programs that are named in it",
    ".hg": "Mercurial runs programs that are named in it",
    ".jj": "Jujutsu runs programs that are named in it",
    ".svn": "Subversion runs hooks that are in it",
    ".vscode": "the editor runs tasks and programs that are named in it",
    ".vs": "the editor runs tasks and programs that are named in it",
    ".idea": "the editor runs tasks and programs that are named in it",
    ".fleet": "the editor runs tasks and programs that are named in it",
    ".zed": "the editor runs tasks and programs that are named in it",
    ".nvim": "the editor runs what is in it",
    ".vim": "the editor runs programs that are named in it",
    ".helix": "the editor runs programs that are named in it",
    ".nova": "the editor runs programs that are named in it",
    ".theia": "the editor runs programs that are named in it",
    ".husky": "git runs the hooks that are in it",
    ".githooks": "git runs the hooks that are in it",
    ".lefthook": "git runs the hooks that are in it",
    ".devcontainer": "the editor builds and starts what it describes",
    ".github/workflows": "its workflows run with the project's rights",
    ".github/actions": "its actions run with the project's rights",
    ".github/instructions": "it steers agents",
    ".github/prompts": "it steers agents",
    ".github/agents": "it steers agents",
    ".github/chatmodes": "it steers agents",
    ".github/hooks": "agents run the hooks that are in it",
    ".github/skills": "it steers agents",
    ".gitea/workflows": "its workflows run with the project's rights",
    ".forgejo/workflows": "its workflows run with the project's rights",
    ".circleci": "its jobs run with the project's rights",
    ".buildkite": "its jobs run with the project's rights",
    ".woodpecker": "its jobs run with the project's rights",
    ".teamcity": "its jobs run with the project's rights",
    ".tekton": "its jobs run with the project's rights",
    ".semaphore": "its jobs run with the project's rights",
    ".cargo": "cargo runs programs that are named in it",
    ".mvn": "Maven takes its options from it",
    ".yarn": "yarn runs what is in it",
    ".direnv": "the shell runs what is in it",
    ".mise": "the shell runs what is in it",
    ".config/mise": "the shell runs what is in it",
    ".tiller": "it configures and steers agents",
    ".agent": "it configures and steers agents",
    ".agents": "it configures and steers agents",
    ".aider": "it configures and steers agents",
    ".augment": "it configures and steers agents",
    ".amazonq": "it configures and steers agents",
    ".claude": "it configures and steers agents",
    ".claude-plugin": "it configures and steers agents",
    ".cline": "it configures and steers agents",
    ".clinerules": "it configures and steers agents",
    ".codex": "it configures and steers agents",
    ".continue": "it configures and steers agents",
    ".crush": "it configures and steers agents",
    ".cursor": "it configures and steers agents",
    ".factory": "it configures and steers agents",
    ".gemini": "it configures and steers agents",
    ".goose": "it configures and steers agents",
    ".junie": "it configures and steers agents",
    ".kilocode": "it configures and steers agents",
    ".kiro": "it configures and steers agents",
    ".opencode": "it configures and steers agents",
    ".openhands": "it configures and steers agents",
    ".pi": "it configures and steers agents",
    ".qwen": "it configures and steers agents",
    ".roo": "it configures and steers agents",
    ".trae": "it configures and steers agents",
    ".windsurf": "it configures and steers agents",
    ".ssh": "it holds keys and says who may log in",
    ".gnupg": "it holds keys",
    ".aws": "it holds keys",
    ".azure": "it holds keys",
    ".docker": "it holds keys",
    ".kube": "it holds keys",
}
"""Folders, at any depth, in which nothing is changed without asking, and why. Spelt as on disk; `/` between two names."""

PROTECTED_NAMES: Mapping[str, str] = {
    # Read by agents
    "AGENTS.md": "it steers agents",
    "AGENTS.override.md": "it steers agents",
    "AGENT.md": "it steers agents",
    "CLAUDE.md": "it steers agents",
    "CLAUDE.local.md": "it steers agents",
    "GEMINI.md": "it steers agents",
    "QWEN.md": "it steers agents",
    "CRUSH.md": "it steers agents",
    "WARP.md": "it steers agents",
    "copilot-instructions.md": "it steers agents",
    ".cursorrules": "it steers agents",
    ".goosehints": "it steers agents",
    ".roorules": "it steers agents",
    ".windsurfrules": "it steers agents",
    ".rules": "it steers agents",
    ".roomodes": "it steers agents",
    ".kilocodemodes": "it steers agents",
    ".continuerules": "it steers agents",
    ".mcp.json": "agents start the servers that it names",
    ".claude.json": "it configures and steers agents",
    ".aider.conf.yml": "it configures and steers agents",
    "opencode.json": "it configures and steers agents",
    "opencode.jsonc": "it configures and steers agents",
    ".opencode.json": "it configures and steers agents",
    "crush.json": "it configures and steers agents",
    ".crush.json": "it configures and steers agents",
    # Read by git and what stands around it
    ".gitattributes": "git runs filters by it",
    ".gitconfig": "git runs programs that are named in it",
    ".gitmodules": "git fetches from addresses that it names",
    ".git-credentials": "it holds keys",
    ".hgrc": "Mercurial runs programs that are named in it",
    ".lfsconfig": "git sends files to addresses that it names",
    ".pre-commit-config.yaml": "git runs the hooks that it names",
    ".pre-commit-config.yml": "git runs the hooks that it names",
    ".pre-commit-hooks.yaml": "git runs the hooks that it names",
    "lefthook.yml": "git runs the hooks that it names",
    "lefthook.yaml": "git runs the hooks that it names",
    ".lefthook.yml": "git runs the hooks that it names",
    ".lefthook.yaml": "git runs the hooks that it names",
    "lefthook-local.yml": "git runs the hooks that it names",
    "lefthook-local.yaml": "git runs the hooks that it names",
    ".lefthook-local.yml": "git runs the hooks that it names",
    "prek.toml": "git runs the hooks that it names",
    "hk.pkl": "git runs the hooks that it names",
    ".overcommit.yml": "git runs the hooks that it names",
    "captainhook.json": "git runs the hooks that it names",
    "grumphp.yml": "git runs the hooks that it names",
    ".huskyrc": "git runs the hooks that it names",
    ".lintstagedrc": "git runs the programs that it names",
    # Read by machines that build
    ".gitlab-ci.yml": "its jobs run with the project's rights",
    ".travis.yml": "its jobs run with the project's rights",
    ".drone.yml": "its jobs run with the project's rights",
    ".appveyor.yml": "its jobs run with the project's rights",
    "appveyor.yml": "its jobs run with the project's rights",
    "azure-pipelines.yml": "its jobs run with the project's rights",
    "azure-pipelines.yaml": "its jobs run with the project's rights",
    "bitbucket-pipelines.yml": "its jobs run with the project's rights",
    "cloudbuild.yaml": "its jobs run with the project's rights",
    "cloudbuild.yml": "its jobs run with the project's rights",
    "buildspec.yml": "its jobs run with the project's rights",
    ".woodpecker.yml": "its jobs run with the project's rights",
    ".woodpecker.yaml": "its jobs run with the project's rights",
    ".cirrus.yml": "its jobs run with the project's rights",
    ".cirrus.star": "its jobs run with the project's rights",
    ".build.yml": "its jobs run with the project's rights",
    ".readthedocs.yml": "its jobs run with the project's rights",
    ".readthedocs.yaml": "its jobs run with the project's rights",
    "Jenkinsfile": "its jobs run with the project's rights",
    "dependabot.yml": "a robot changes the project by it",
    "renovate.json": "a robot changes the project by it",
    "renovate.json5": "a robot changes the project by it",
    ".renovaterc": "a robot changes the project by it",
    ".renovaterc.json": "a robot changes the project by it",
    "CODEOWNERS": "it says who must agree to changes",
    # Read by shells
    ".bashrc": "shells run it",
    ".bash_aliases": "shells run it",
    ".bash_login": "shells run it",
    ".bash_logout": "shells run it",
    ".bash_profile": "shells run it",
    ".profile": "shells run it",
    ".zshrc": "shells run it",
    ".zshenv": "shells run it",
    ".zlogin": "shells run it",
    ".zlogout": "shells run it",
    ".zprofile": "shells run it",
    ".kshrc": "shells run it",
    ".mkshrc": "shells run it",
    ".shrc": "shells run it",
    ".cshrc": "shells run it",
    ".tcshrc": "shells run it",
    ".login": "shells run it",
    ".logout": "shells run it",
    ".xprofile": "it is run at login",
    ".xinitrc": "it is run at login",
    ".xsession": "it is run at login",
    ".xsessionrc": "it is run at login",
    ".pam_environment": "it sets the environment at login",
    "config.fish": "shells run it",
    ".inputrc": "shells take their keys from it",
    ".envrc": "shells run it on entering the folder",
    ".rvmrc": "shells run it on entering the folder",
    ".autoenv": "shells run it on entering the folder",
    ".autoenv.zsh": "shells run it on entering the folder",
    ".env.mise.toml": "shells run it on entering the folder",
    ".mise.toml": "shells run it on entering the folder",
    "mise.toml": "shells run it on entering the folder",
    ".rtx.toml": "shells run it on entering the folder",
    ".tool-versions": "it chooses the programs that run",
    "rust-toolchain": "it chooses the programs that run",
    "rust-toolchain.toml": "it chooses the programs that run",
    # Read by other programs, which run what it names
    ".ripgreprc": "programs take options from it",
    ".curlrc": "programs take options from it",
    ".wgetrc": "programs take options from it",
    ".npmrc": "it can name other programs and registries, and holds keys",
    ".yarnrc": "yarn runs the program that it names",
    ".yarnrc.yml": "yarn runs the program that it names",
    ".pnpmfile.cjs": "pnpm runs it",
    ".pnpmfile.mjs": "pnpm runs it",
    "bunfig.toml": "bun loads what it names",
    ".pypirc": "it holds keys",
    ".condarc": "it can name other registries",
    "pip.conf": "it can name other registries",
    ".gdbinit": "the debugger runs it",
    ".lldbinit": "the debugger runs it",
    ".pdbrc": "the debugger runs it",
    ".pythonrc": "Python runs it",
    ".pythonrc.py": "Python runs it",
    "sitecustomize.py": "Python runs it at every start",
    "usercustomize.py": "Python runs it at every start",
    ".irbrc": "Ruby runs it",
    ".pryrc": "Ruby runs it",
    ".Rprofile": "R runs it",
    ".perltidyrc": "programs take options from it",
    ".screenrc": "the terminal runs what it names",
    ".tmux.conf": "the terminal runs what it names",
    # Read by editors
    ".vimrc": "the editor runs it",
    ".gvimrc": "the editor runs it",
    ".exrc": "the editor runs it",
    ".nexrc": "the editor runs it",
    ".nvimrc": "the editor runs it",
    ".nvim.lua": "the editor runs it",
    ".lazy.lua": "the editor runs it",
    ".lvimrc": "the editor runs it",
    ".ycm_extra_conf.py": "the editor runs it",
    ".ideavimrc": "the editor runs it",
    ".emacs": "the editor runs it",
    ".dir-locals.el": "the editor runs it",
    ".dir-locals-2.el": "the editor runs it",
    ".sublime-project": "the editor runs programs that are named in it",
    ".devcontainer.json": "the editor builds and starts what it describes",
    ".gitpod.yml": "the editor runs tasks that are named in it",
}
"""Files, at any depth, that are not changed without asking, and why. Spelt as on disk."""

PROTECTED_PATTERNS: Mapping[str, str] = {
    "*.code-workspace": "the editor runs tasks and programs that are named in it",
    "*.sublime-project": "the editor runs programs that are named in it",
    ".huskyrc.*": "git runs the hooks that it names",
    ".lintstagedrc.*": "git runs the programs that it names",
    "lefthook.json*": "git runs the hooks that it names",
    "lefthook.toml": "git runs the hooks that it names",
    "lefthook-local.*": "git runs the hooks that it names",
    ".lefthook.*": "git runs the hooks that it names",
    ".lefthook-local.*": "git runs the hooks that it names",
    "mise.*.toml": "shells run it on entering the folder",
    ".mise.*.toml": "shells run it on entering the folder",
    ".aider*": "it configures and steers agents",
    # Spellings that Windows makes of `.git` and the like for old programs.
    "git~[0-9]": "git runs programs that are named in it",
}
"""As PROTECTED_NAMES, for names that differ; lower case, for `fnmatch`."""

SECRET_NAMES: frozenset[str] = frozenset(
    {
        ".dockercfg",
        ".env",
        ".git-credentials",
        ".htpasswd",
        ".my.cnf",
        ".netrc",
        "_netrc",
        ".npmrc",
        ".pgpass",
        ".pypirc",
        ".s3cfg",
        ".secrets.toml",
        ".terraformrc",
        ".vault-token",
        "application_default_credentials.json",
        "auth.json",
        "credentials.json",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
        "id_ed25519_sk",
        "id_rsa",
        "kubeconfig",
        "secrets.json",
        "secrets.toml",
        "secrets.yaml",
        "secrets.yml",
        "service-account.json",
    }
)
"""Files that hold keys as a rule; lower case."""

SECRET_FOLDERS: frozenset[str] = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube"})
SECRET_PATTERNS = (
    ".env.*",
    "*.env",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    # Terraform writes passwords into its state as they are.
    "*.tfstate",
    "*.tfvars",
    "*.tfvars.json",
)
SECRET_PAIRS: frozenset[str] = frozenset({".docker/config.json"})
"""Files that hold keys in folders of one name; lower case."""
COPY_ENDINGS = ("backup", "bak", "copy", "old", "orig", "prev", "save", "swn", "swo", "swp", "tmp")
"""Editors and people end the names of copies with these, or with `~`: a copy holds what its original does."""
PUBLIC_ENDINGS = ("example", "sample", "template", "dist", "defaults", "schema", "pub")
"""A name that says so of itself holds no secret: `.env.example`."""

IGNORED = frozenset(range(0xFE00, 0xFE10)) | frozenset(range(0xE0100, 0xE01F0))
"""Variation selectors: a part of the name before them, and not seen."""


def is_protected(path: Path, *, roots: Sequence[Path]) -> str | None:
    """Return why a file must not be changed without asking; None: it may.

    Names are compared as the most lenient file system does, so `.GIT` and `.g\u200cit` are `.git`.

    Args:
        path: Real, as the workspace resolved it. An entry of a protected folder is protected, and so is the folder.
        roots: Real. Folders above a root do not count, but for the root's own name; outside of all roots every
            folder counts.
    """
    names = _names(path, roots)
    for start, name in enumerate(names):
        pair = f"{name}/{names[start + 1]}" if start + 1 < len(names) else ""
        for one in (name, pair):
            if why := _FOLDERS.get(one):
                return f"{one} is protected: {why}"
    name = names[-1]
    if why := _NAMES.get(name):
        return f"{name} is protected: {why}"
    for pattern, why in PROTECTED_PATTERNS.items():
        if any(fnmatchcase(one, pattern) for one in names):
            return f"{path.name} is protected: {why}"
    return is_secret(path, roots=roots)


def is_secret(path: Path, *, roots: Sequence[Path]) -> str | None:
    """Return why a file must not even be read without asking; None: it may. Arguments as of `is_protected`."""
    names = _names(path, roots)
    if found := SECRET_FOLDERS.intersection(names):
        return f"{min(found)} holds keys"
    name, folder = names[-1], "".join(names[-2:-1])
    if is_secret_name(name, folder=folder):
        return f"{name} holds secrets as a rule"
    return None


def is_secret_name(name: str, *, folder: str = "") -> bool:
    """Return whether a file holds secrets by its name or by that of its original. Pure; both names are folded."""
    if name.rsplit(".", 1)[-1] in PUBLIC_ENDINGS:
        return False
    return (
        name in SECRET_NAMES
        or f"{folder}/{name}" in SECRET_PAIRS
        or _SECRET_PATTERNS.match(name) is not None
        or any(is_secret_name(original, folder=folder) for original in _originals(name))
    )


def _originals(name: str) -> tuple[str, ...]:
    """Return the names of what a file may be a copy of; each is shorter."""
    match = _COPY.fullmatch(name)
    if match is None:
        return ()
    if swapped := match["swapped"]:
        # A swap file of vim is hidden whatever it is one of.
        return swapped, f".{swapped}"
    return (match["saved"] or match["copied"],)


def _names(path: Path, roots: Sequence[Path]) -> tuple[str, ...]:
    """Return the folded names that count; at least one."""
    around = [root for root in roots if path.is_relative_to(root)]
    # The outermost: a root inside a protected folder of another does not free it.
    above = min((len(root.parts) for root in around), default=1)
    return tuple(folded(part) for part in path.parts[max(above - 1, 0) :]) or ("",)


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """Make one of all the spellings of a name that some file system takes for the same.

    Case and compatibility forms go, with characters that nobody sees, and what Windows drops: an ending of dots
    and spaces, and the name of a stream.
    """
    seen = (
        char
        for char in unicodedata.normalize("NFKD", name)
        if unicodedata.category(char) not in {"Cf", "Cc"} and ord(char) not in IGNORED
    )
    text = unicodedata.normalize("NFKC", "".join(seen).casefold())
    return text.split(":", 1)[0].rstrip(". ") or text


_FOLDERS: Mapping[str, str] = {name.casefold(): why for name, why in PROTECTED_FOLDERS.items()}
_NAMES: Mapping[str, str] = {name.casefold(): why for name, why in PROTECTED_NAMES.items()}
_SECRET_PATTERNS = re.compile("|".join(translate(one) for one in SECRET_PATTERNS))
_COPY = re.compile(
    rf"\.(?P<swapped>.+)\.sw[n-p]|#(?P<saved>.+)#|(?P<copied>.+?)(~|\.~\d+~|[ _-]copy|\.({'|'.join(COPY_ENDINGS)})\d*)",
    re.DOTALL,
)
