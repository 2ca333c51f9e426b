"""Where people keep keys: folders and files that no contained process sees."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from agent_core.kernel.values import Value

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
