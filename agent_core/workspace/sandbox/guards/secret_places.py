"""Where people keep keys: folders and files that no contained process sees."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.files.text import read_plain
from agent_core.workspace.sandbox.guards.git import git_folders
from agent_core.workspace.sandbox.guards.tree_index import GuardedEntry

SECRET_FOLDERS: Final = (
    *(".ssh", ".aws", ".gnupg", ".azure", ".docker", ".kube", ".password-store", ".1password"),
    *(".config/gh", ".config/hub", ".config/glab-cli", ".config/gcloud", ".config/op", ".config/rclone"),
    *(".config/containers", ".config/doctl", ".config/heroku", ".config/flyctl", ".fly", ".terraform.d"),
    *(".config/github-copilot", ".config/sops", ".config/age", ".config/git/credential", ".oci", ".minikube"),
    *(".local/share/keyrings", ".local/share/kwalletd", ".cache/git/credential", ".gem/trusted-certs"),
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware"),
    *(".config/microsoft-edge", ".config/Signal", ".config/Slack", ".config/discord", ".electrum", ".bitcoin"),
    *(".claude", ".codex", ".gemini", ".pi", ".config/opencode", ".local/share/opencode", ".qwen"),
    *("snap/firefox", ".var/app", "Library/Keychains", "Library/Cookies"),
    *(".pulumi", ".config/stripe", ".config/hcloud", ".kaggle", ".cloudflared", ".dbt", ".openai", ".continue"),
    *(".cursor", ".vscode-server", ".cursor-server", ".config/io.datasette.llm", ".local/share/com.vercel.cli"),
    *(".local/share/uv/credentials", ".local/share/mkcert", ".config/netlify", ".config/.wrangler", ".wrangler", ".config/ngrok", ".config/linode-cli", ".vault"),
    *(".config/scw", ".config/exercism", ".config/configstore", ".config/goose"),
    *(".config/Bitwarden", ".config/Bitwarden CLI", ".config/keepassxc", ".config/1Password"),
    *(".config/vivaldi", ".config/opera", ".config/librewolf", ".librewolf", ".config/Element", ".config/teams"),
    *(".config/evolution", ".local/share/evolution", ".config/remmina", ".local/share/remmina", ".config/gspread"),
    *(".julia/servers", ".dotnet/corefx", ".aspnet", ".opam/plugins/opam-publish", ".config/earthengine", ".ethereum"),
    *(".config/solana", ".foundry/keystores", ".monero", ".subversion/auth", ".step", ".chef"),
)  # fmt: skip
"""Below a home."""
SECRET_FILES: Final = (
    *(".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".config/git/credentials", ".pgpass"),
    *(".my.cnf", ".s3cfg", ".boto", ".vault-token", ".dockercfg", ".htpasswd", ".Xauthority", ".ICEauthority"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml"),
    *(".m2/settings-security.xml", ".gradle/gradle.properties", ".yarnrc.yml", ".claude.json", ".config/hub"),
    *(".config/pip/pip.conf", ".pip/pip.conf", ".config/uv/credentials", ".composer/auth.json"),
    *(".config/composer/auth.json", ".nuget/NuGet/NuGet.Config", ".databrickscfg", ".snowsql/config"),
    *(".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history"),
    *(".mysql_history", ".local/share/fish/fish_history", ".lesshst", ".viminfo", ".sqlite_history"),
    *(".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".huggingface/token", ".terraformrc"),
    *(".authinfo", ".authinfo.gpg", ".msmtprc", ".config/msmtp/config", ".mbsyncrc", ".fetchmailrc", ".smbcredentials"),
    *(".aider.conf.yml", ".config/Code/User/globalStorage/state.vscdb", ".config/pypoetry/auth.toml"),
    *(".config/Code/User/globalStorage/state.vscdb.backup", ".config/VSCodium/User/globalStorage/state.vscdb"),
    *(".config/Cursor/User/globalStorage/state.vscdb", ".rye/credentials", ".hex/hex.config", ".ivy2/.credentials"),
    *(".config/rebar3/hex.config", ".sbt/.credentials", ".bundle/config", ".local/share/gem/credentials"),
    *(".config/dart/pub-credentials.json", ".pub-cache/credentials.json", ".luarocks/upload_config.lua", ".nimble/github_api_token"),
    *(".platformio/appstate.json", ".android/adbkey", ".rclone.conf"),
    *(".config/ngrok.yml", ".ngrok2/ngrok.yml", ".config/atuin/key", ".wakatime.cfg"),
    *(".jupyter/jupyter_server_config.json", ".irb_history", ".rediscli_history"),
)  # fmt: skip
"""Below a home; they show as empty, since programs ask for some of them at every start."""
_IN_HOME: Final = tuple(
    (name.partition("/")[0].casefold(), name) for name in (*SECRET_FOLDERS, *SECRET_FILES)
)
SYSTEM_FILES: Final = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
)
"""Readable only by root, whom the system refuses nothing."""
SYSTEM_FOLDERS: Final = (
    *("/etc/ssh", "/etc/ssl/private", "/etc/sudoers.d", "/etc/NetworkManager/system-connections"),
    *("/var/lib/docker", "/var/lib/containerd", "/var/spool", "/var/backups"),
)
NAMED_BY: Final = (
    *("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "GNUPGHOME", "KUBECONFIG", "DOCKER_CONFIG"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "NETRC", "PGPASSFILE", "PASSWORD_STORE_DIR", "AZURE_CONFIG_DIR"),
    *("GH_CONFIG_DIR", "CLOUDSDK_CONFIG", "NPM_CONFIG_USERCONFIG", "npm_config_userconfig", "VAULT_TOKEN_PATH"),
)  # fmt: skip
"""Variables that say where keys lie."""
MOVED: Final[Mapping[str, str]] = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_CACHE_HOME": ".cache",
    "CARGO_HOME": ".cargo",
    "GRADLE_USER_HOME": ".gradle",
    "COMPOSER_HOME": ".composer",
    "PUB_CACHE": ".pub-cache",
}
"""Variables that name another place for a folder of a home: its secret parts are secret there too."""


class SecretPlaces(Value, frozen=True, kw_only=True):
    """Secret places that exist on this machine, as real paths."""

    folders: tuple[Path, ...]
    files: tuple[Path, ...]


def secret_places(
    *, homes: Sequence[Path], env: Mapping[str, str], own: Sequence[Path]
) -> SecretPlaces:
    """Look where keys are. Blocking.

    Args:
        homes: The homes of the user.
        env: The environment, before anything is taken out of it.
        own: Folders of ours: settings, keys, sessions, sockets.
    """
    folders: set[Path] = set()
    files: set[Path] = set()
    for place in _candidates(homes, env, own):
        if not os.path.lexists(place):
            continue  # most of them
        real = os.path.realpath(place)
        if os.path.isdir(real):  # noqa: PTH112 - dozens of paths before every command
            folders.add(Path(real))
        elif os.path.isfile(real):  # noqa: PTH113 - as above
            files.add(Path(real))
    return SecretPlaces(
        folders=tuple(sorted(one for one in folders if not _is_below(one, folders))),
        files=tuple(sorted(one for one in files if not _is_below(one, folders))),
    )


def _candidates(
    homes: Sequence[Path], env: Mapping[str, str], own: Sequence[Path]
) -> Iterator[str]:
    for home in homes:
        there = _names(home)
        for first, name in _IN_HOME:
            if there is None or first in there:
                yield f"{home}/{name}"
    for variable, folder in MOVED.items():
        moved = env.get(variable, "")
        if moved.startswith("/"):
            names = (name for _, name in _IN_HOME if name.startswith(f"{folder}/"))
            yield from (f"{moved}/{name.removeprefix(f'{folder}/')}" for name in names)
    yield from (*SYSTEM_FILES, *SYSTEM_FOLDERS)
    for variable in NAMED_BY:
        for place in env.get(variable, "").split(os.pathsep):
            if place.startswith("/") and place != "/":
                yield place
    yield from (str(folder) for folder in own)


def _names(folder: Path) -> set[str] | None:
    """Return the case-folded names in a folder, as some disks ignore case; None: the folder cannot be listed."""
    try:
        return {name.casefold() for name in os.listdir(folder)}  # noqa: PTH208 - strings are enough
    except OSError:
        return None


def _is_below(path: Path, folders: set[Path]) -> bool:
    return any(parent in folders for parent in path.parents)


MOST_FILE_BYTES: Final = 1_048_576
"""A larger file counts as a secret."""
MOST_INDEX_BYTES: Final = 67_108_864
"""Of a larger index nothing counts as tracked."""
SHA1_BYTES: Final = 20
NAME_BITS: Final = 0x0FFF
STAGE_BITS: Final = 0x3000

SecretFileStamp = tuple[int, int, int, int]


class TrackedSecrets:
    """Compares files with the index of their repository, each again when one of the two has changed."""

    def __init__(self) -> None:
        self._indexes: dict[Path, tuple[SecretFileStamp, bytes]] = {}
        self._judged: dict[Path, tuple[SecretFileStamp, SecretFileStamp, bool]] = {}

    def among(self, entries: Mapping[str, GuardedEntry]) -> frozenset[Path]:
        """Return the secret files among what is held that the index of their repository has with the same content."""
        secrets = [
            Path(name)
            for name, entry in entries.items()
            if entry.kind in {"secret", "protected secret"} and stat.S_ISREG(entry.mode)
        ]
        if not secrets:
            return frozenset()
        tops = {
            Path(name).parent
            for name, entry in entries.items()
            if entry.kind == "git" and entry.target is None
        }
        return frozenset(path for path in secrets if self._is_tracked(path, tops))

    def _is_tracked(self, path: Path, tops: Iterable[Path]) -> bool:
        top = next((parent for parent in path.parents if parent in tops), None)
        if top is None:
            return False
        try:
            index_stamp, index = self._index(top)
            stamp = _stamp(os.lstat(path))
            cached = self._judged.get(path)
            if cached is not None and cached[:2] == (stamp, index_stamp):
                return cached[2]
            tracked = _object_of(index, os.fsencode(path.relative_to(top)))
            is_same = tracked is not None and tracked == _blob(path)
            self._judged[path] = stamp, index_stamp, is_same
        except (OSError, ValueError):
            return False
        return is_same

    def _index(self, top: Path) -> tuple[SecretFileStamp, bytes]:
        """Return the index of a repository with its stamp.

        Raises:
            OSError: There is none.
            ValueError: It is none that can be read.
        """
        folders = git_folders(top)
        if not folders:
            message = f"no repository of its own: {top}"
            raise ValueError(message)
        # Of a worktree the last is its own.
        place = folders[-1].path / "index"
        stamp = _stamp(os.lstat(place))
        if place not in self._indexes or self._indexes[place][0] != stamp:
            self._indexes[place] = stamp, read_plain(place, most_bytes=MOST_INDEX_BYTES)
        return self._indexes[place]


def _object_of(index: bytes, name: bytes) -> bytes | None:
    """Return the object that an index has for a path (git, index-format.adoc, versions 2 and 3); None: it has none. Pure."""
    at = 0
    while (at := index.find(name + b"\0", at + 1)) > 0:
        flags = int.from_bytes(index[at - 2 : at], "big")
        if flags & NAME_BITS == min(len(name), NAME_BITS) and not flags & STAGE_BITS:
            return index[at - 2 - SHA1_BYTES : at - 2]
    return None


def _blob(path: Path) -> bytes:
    """Return the name that git gives to the content of a file."""
    data = read_plain(path, most_bytes=MOST_FILE_BYTES)
    return hashlib.sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).digest()


def _stamp(found: os.stat_result) -> SecretFileStamp:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
