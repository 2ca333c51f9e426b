"""The environment of a tool's processes: the variables of tool chains and those that the user's settings allow.

A variable that no row names does not reach a command, and a folder of a home that no row names is not shown to one. A
row must name nothing that holds keys: of a folder with a file of credentials it names the parts that builds read.

Variables that would pass are checked a second time, against names and values of secrets, loaders of code, and ways to
other programs.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Final

import msgspec

from agent_core.kernel.values import Value


class ToolChain(Value, frozen=True, kw_only=True):
    """One tool chain."""

    name: str
    variables: str = ""
    """Names, separated by spaces."""
    home: str = ""
    """Paths below a home, separated by spaces."""
    located: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict[str, Sequence[str]])
    """Variables that name a folder, each with the parts of that folder that builds read; `.` is all of it."""


WHOLE: Final = (".",)
CARGO: Final = ("bin", "registry", "git", "env")
DOTNET: Final = ("dotnet", "host", "packs", "sdk", "sdk-manifests", "shared", "templates", "tools")
JULIA: Final = (
    *("artifacts", "bin", "clones", "compiled", "environments", "juliaup", "packages", "registries"),
)  # fmt: skip
PUB: Final = ("bin", "git", "global_packages", "hosted")
STACK: Final = ("pantry", "programs", "snapshots")


def _below(folder: str, parts: Sequence[str]) -> str:
    """Return the parts of a folder as a list of paths for `ToolChain.home`."""
    return " ".join(f"{folder}/{part}" for part in parts)


TOOLCHAINS: Final = (
    ToolChain(
        name="system",
        variables="""
        PATH HOME PWD OLDPWD SHELL SHLVL USER LOGNAME HOSTNAME TZ LANG LANGUAGE TERM COLORTERM COLUMNS LINES
        NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE LS_COLORS LSCOLORS GREP_COLORS LESS PAGER EDITOR VISUAL
        MANPATH INFOPATH XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_DIRS XDG_CONFIG_DIRS
        CI CONTINUOUS_INTEGRATION GITHUB_ACTIONS GITLAB_CI DEBIAN_FRONTEND DO_NOT_TRACK SOURCE_DATE_EPOCH
        """,
        home="bin .local/bin .local/lib .terminfo .fonts .local/share/fonts .config/fontconfig",
    ),
    ToolChain(
        name="Windows",
        variables="""
        SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT OS USERNAME USERPROFILE HOMEDRIVE HOMEPATH APPDATA LOCALAPPDATA
        PROGRAMDATA PROGRAMFILES PROGRAMW6432 NUMBER_OF_PROCESSORS PROCESSOR_ARCHITECTURE
        """,
    ),
    ToolChain(
        name="network",
        # Addresses and files of certificates; an address with a password in it is taken out like a secret.
        variables="""
        HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy ftp_proxy all_proxy no_proxy
        SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS PIP_CERT NIX_SSL_CERT_FILE
        """,
    ),
    ToolChain(
        name="git",
        variables="""
        GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE
        GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER GIT_TERMINAL_PROMPT GIT_OPTIONAL_LOCKS GIT_CONFIG_NOSYSTEM
        GIT_CEILING_DIRECTORIES GIT_SSL_CAINFO GIT_SSL_CAPATH
        """,
        home=".gitconfig .config/git .gitignore .gitignore_global .gitattributes",
    ),
    ToolChain(
        name="version managers",
        variables="ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR HOMEBREW_PREFIX HOMEBREW_CELLAR HOMEBREW_REPOSITORY",
        home=".asdf .tool-versions .local/share/mise .local/share/rtx .proto .linuxbrew",
        located={
            "ASDF_DIR": WHOLE,
            "ASDF_DATA_DIR": WHOLE,
            "MISE_DATA_DIR": WHOLE,
            "HOMEBREW_PREFIX": WHOLE,
        },
    ),
    ToolChain(
        name="C and C++",
        variables="""
        CC CXX CPP AR AS LD NM RANLIB STRIP OBJCOPY CFLAGS CXXFLAGS CPPFLAGS LDFLAGS ARCH CROSS_COMPILE SYSROOT
        CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH PKG_CONFIG PKG_CONFIG_PATH PKG_CONFIG_LIBDIR
        PKG_CONFIG_SYSROOT_DIR CMAKE_GENERATOR CMAKE_BUILD_TYPE CMAKE_BUILD_PARALLEL_LEVEL CMAKE_PREFIX_PATH
        CMAKE_EXPORT_COMPILE_COMMANDS CTEST_OUTPUT_ON_FAILURE CTEST_PARALLEL_LEVEL VCPKG_ROOT
        ASAN_OPTIONS LSAN_OPTIONS MSAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS
        """,
        home=".conan2/p .conan/data .cmake/packages",
        located={"VCPKG_ROOT": WHOLE},
    ),
    ToolChain(
        name="Python",
        variables="""
        VIRTUAL_ENV VIRTUAL_ENV_PROMPT CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_EXE CONDA_PYTHON_EXE CONDA_SHLVL MAMBA_EXE
        MAMBA_ROOT_PREFIX PYTHONPATH PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED PYTHONHASHSEED PYTHONUTF8
        PYTHONIOENCODING PYTHONDEVMODE PYTHONFAULTHANDLER PYTHONOPTIMIZE PYTHONNOUSERSITE PYTHONSAFEPATH
        PYTHONTRACEMALLOC PYTHONASYNCIODEBUG PYTHONPYCACHEPREFIX PYTHONMALLOC PYTHON_COLORS PYTHON_GIL
        PYENV_ROOT PYENV_VERSION PYENV_SHELL PIPX_HOME PIPX_BIN_DIR WORKON_HOME POETRY_HOME
        POETRY_VIRTUALENVS_IN_PROJECT POETRY_VIRTUALENVS_PATH PIPENV_VENV_IN_PROJECT PIP_INDEX_URL PIP_EXTRA_INDEX_URL
        PIP_FIND_LINKS PIP_NO_INDEX PIP_DEFAULT_TIMEOUT PIP_DISABLE_PIP_VERSION_CHECK PIP_REQUIRE_VIRTUALENV
        PIP_CONSTRAINT PIP_NO_INPUT PIP_TRUSTED_HOST UV_PYTHON UV_PYTHON_INSTALL_DIR UV_PROJECT_ENVIRONMENT
        UV_INDEX_URL UV_EXTRA_INDEX_URL UV_DEFAULT_INDEX UV_INDEX UV_OFFLINE UV_LINK_MODE UV_SYSTEM_PYTHON
        UV_TOOL_DIR UV_TOOL_BIN_DIR MYPYPATH COVERAGE_FILE DJANGO_SETTINGS_MODULE FLASK_APP FLASK_DEBUG
        """,
        home="""
        .pyenv .virtualenvs .local/share/virtualenvs .local/share/pipx .local/share/uv/python .local/share/uv/tools
        .local/share/pypoetry .local/share/hatch .local/share/pdm .local/pipx .cache/pypoetry/virtualenvs .rye/py .rye/self .rye/shims
        .rye/tools .conda/envs .conda/pkgs miniconda3 miniforge3 mambaforge anaconda3 micromamba
        """,
        located={
            "VIRTUAL_ENV": WHOLE,
            "CONDA_PREFIX": WHOLE,
            "MAMBA_ROOT_PREFIX": WHOLE,
            "PYENV_ROOT": WHOLE,
            "PIPX_HOME": WHOLE,
            "WORKON_HOME": WHOLE,
            "POETRY_HOME": WHOLE,
            "POETRY_VIRTUALENVS_PATH": WHOLE,
            "UV_PYTHON_INSTALL_DIR": WHOLE,
            "UV_TOOL_DIR": WHOLE,
        },
    ),
    ToolChain(
        name="Rust",
        variables="""
        CARGO_HOME CARGO_BUILD_JOBS CARGO_INCREMENTAL CARGO_NET_OFFLINE CARGO_TERM_COLOR RUSTFLAGS RUSTDOCFLAGS
        RUST_BACKTRACE RUST_LIB_BACKTRACE RUST_LOG RUST_MIN_STACK RUST_TEST_THREADS RUSTUP_HOME RUSTUP_TOOLCHAIN
        RUSTUP_DIST_SERVER RUSTUP_UPDATE_ROOT RUSTUP_AUTO_INSTALL
        """,
        home=f"{_below('.cargo', CARGO)} .rustup",
        located={"CARGO_HOME": CARGO, "RUSTUP_HOME": WHOLE},
    ),
    ToolChain(
        name="Go",
        # Without GOCACHE, as without the caches of other tool chains: a contained command has caches of its own.
        variables="""
        GOPATH GOROOT GOBIN GOMODCACHE GOPROXY GOSUMDB GONOSUMDB GONOPROXY GOPRIVATE GOINSECURE GOOS GOARCH GOARM
        GOAMD64 GO111MODULE GOTOOLCHAIN GOWORK GOEXPERIMENT GODEBUG GOMAXPROCS GOMEMLIMIT GOGC GOTRACEBACK GORACE
        CGO_ENABLED CGO_CFLAGS CGO_CXXFLAGS CGO_LDFLAGS
        """,
        home="go .goenv .gvm",
        located={"GOPATH": WHOLE, "GOROOT": WHOLE, "GOMODCACHE": WHOLE},
    ),
    ToolChain(
        name="JavaScript",
        variables="""
        NODE_ENV NODE_PATH NODE_NO_WARNINGS NODE_VERSION NVM_DIR NVM_BIN NVM_INC FNM_DIR FNM_MULTISHELL_PATH N_PREFIX
        VOLTA_HOME PNPM_HOME BUN_INSTALL DENO_DIR DENO_INSTALL COREPACK_HOME BABEL_ENV TS_NODE_PROJECT HUSKY
        NEXT_TELEMETRY_DISABLED PLAYWRIGHT_BROWSERS_PATH PUPPETEER_EXECUTABLE_PATH PUPPETEER_SKIP_DOWNLOAD CHROME_BIN
        npm_config_registry NPM_CONFIG_REGISTRY npm_config_prefix NPM_CONFIG_PREFIX
        """,
        home="""
        .nvm .fnm .local/share/fnm .nodenv .npm-global .npm-packages .volta .local/share/pnpm .bun .deno .yarn/bin
        .config/yarn/global .n/bin .n/lib .n/n
        """,
        located={
            "NVM_DIR": WHOLE,
            "FNM_DIR": WHOLE,
            "N_PREFIX": ("bin", "lib", "n"),
            "VOLTA_HOME": WHOLE,
            "PNPM_HOME": WHOLE,
            "BUN_INSTALL": WHOLE,
            "DENO_DIR": WHOLE,
            "DENO_INSTALL": WHOLE,
            "COREPACK_HOME": WHOLE,
            "PLAYWRIGHT_BROWSERS_PATH": WHOLE,
        },
    ),
    ToolChain(
        name="Java",
        variables="""
        JAVA_HOME JDK_HOME JRE_HOME CLASSPATH M2_HOME MAVEN_HOME GRADLE_HOME GRADLE_USER_HOME ANT_HOME SBT_HOME
        KOTLIN_HOME SCALA_HOME SDKMAN_DIR SDKMAN_CANDIDATES_DIR SDKMAN_PLATFORM JENV_ROOT
        """,
        home="""
        .m2/repository .m2/wrapper .gradle/caches .gradle/wrapper .gradle/jdks .sdkman .jenv .jabba .jdks .ivy2/cache
        .ivy2/local .sbt/boot .sbt/launchers .konan .lein/self-installs
        """,
        located={
            "JAVA_HOME": WHOLE,
            "JDK_HOME": WHOLE,
            "JRE_HOME": WHOLE,
            "M2_HOME": ("bin", "boot", "conf", "lib"),
            "MAVEN_HOME": ("bin", "boot", "conf", "lib"),
            "GRADLE_HOME": WHOLE,
            "GRADLE_USER_HOME": ("caches", "jdks", "wrapper"),
            "ANT_HOME": WHOLE,
            "SBT_HOME": WHOLE,
            "KOTLIN_HOME": WHOLE,
            "SCALA_HOME": WHOLE,
            "SDKMAN_DIR": WHOLE,
            "JENV_ROOT": WHOLE,
        },
    ),
    ToolChain(
        name="Ruby",
        variables="""
        GEM_HOME GEM_PATH BUNDLE_PATH BUNDLE_GEMFILE BUNDLE_JOBS BUNDLE_WITHOUT RBENV_ROOT RBENV_VERSION RBENV_SHELL
        RUBY_VERSION RUBY_ROOT MY_RUBY_HOME rvm_path RAILS_ENV RACK_ENV
        """,
        home=".rbenv .rvm .rubies .gem/ruby .gem/jruby .gem/truffleruby .local/share/gem/ruby",
        located={"GEM_HOME": WHOLE, "RBENV_ROOT": WHOLE, "RUBY_ROOT": WHOLE, "rvm_path": WHOLE},
    ),
    ToolChain(
        name="PHP",
        variables="COMPOSER_HOME COMPOSER_NO_INTERACTION COMPOSER_ALLOW_SUPERUSER COMPOSER_VENDOR_DIR PHPENV_ROOT APP_ENV APP_DEBUG XDEBUG_MODE",
        home=".composer/vendor .config/composer/vendor .phpenv .phpbrew",
        located={"COMPOSER_HOME": ("vendor",), "PHPENV_ROOT": WHOLE},
    ),
    ToolChain(
        name=".NET",
        variables="""
        DOTNET_ROOT DOTNET_ROOT_X64 DOTNET_CLI_HOME DOTNET_CLI_TELEMETRY_OPTOUT DOTNET_NOLOGO DOTNET_ENVIRONMENT
        DOTNET_SKIP_FIRST_TIME_EXPERIENCE DOTNET_SYSTEM_GLOBALIZATION_INVARIANT ASPNETCORE_ENVIRONMENT NUGET_PACKAGES
        MSBUILDDISABLENODEREUSE
        """,
        # Not all of it: private keys of certificates lie in `.dotnet/corefx`.
        home=f"{_below('.dotnet', DOTNET)} .nuget/packages",
        located={"DOTNET_ROOT": DOTNET, "NUGET_PACKAGES": WHOLE},
    ),
    ToolChain(
        name="Android, Dart and Swift",
        variables="""
        ANDROID_HOME ANDROID_SDK_ROOT ANDROID_NDK_HOME ANDROID_NDK_ROOT FLUTTER_ROOT FLUTTER_HOME PUB_CACHE SDKROOT
        DEVELOPER_DIR MACOSX_DEPLOYMENT_TARGET
        """,
        # Every machine has a debug key of its own, with a password that everybody knows: builds for tests sign with it.
        home=f"Android/Sdk .android/debug.keystore flutter fvm/versions {_below('.pub-cache', PUB)} .local/share/swiftly",
        located={
            "ANDROID_HOME": WHOLE,
            "ANDROID_SDK_ROOT": WHOLE,
            "ANDROID_NDK_HOME": WHOLE,
            "ANDROID_NDK_ROOT": WHOLE,
            "FLUTTER_ROOT": WHOLE,
            "FLUTTER_HOME": WHOLE,
            "PUB_CACHE": PUB,
        },
    ),
    ToolChain(
        name="Haskell and OCaml",
        variables="STACK_ROOT CABAL_DIR OPAMROOT OPAMSWITCH OPAM_SWITCH_PREFIX OCAMLPATH OCAML_TOPLEVEL_PATH CAML_LD_LIBRARY_PATH",
        home=f"{_below('.stack', STACK)} .ghcup .cabal/bin .cabal/packages .cabal/store .local/state/cabal/store .opam",
        located={"STACK_ROOT": STACK, "OPAMROOT": WHOLE, "OPAM_SWITCH_PREFIX": WHOLE},
    ),
    ToolChain(
        name="other languages",
        variables="""
        MIX_ENV MIX_HOME LUA_PATH LUA_CPATH R_HOME R_LIBS R_LIBS_USER JULIA_DEPOT_PATH JULIA_PROJECT JULIA_NUM_THREADS
        """,
        home=f"""
        .mix .hex/packages .luarocks/bin .luarocks/lib .luarocks/share perl5 .plenv .choosenim .nimble/bin .nimble/pkgs
        .nimble/pkgs2 R/x86_64-pc-linux-gnu-library R/aarch64-unknown-linux-gnu-library .juliaup
        {_below(".julia", JULIA)} .platformio/packages .platformio/penv .platformio/platforms texmf
        """,
        located={"MIX_HOME": WHOLE, "R_LIBS_USER": WHOLE, "JULIA_DEPOT_PATH": JULIA},
    ),
    ToolChain(
        name="Nix and Guix",
        variables="""
        NIX_PATH NIX_PROFILES NIX_CC NIX_BINTOOLS NIX_CFLAGS_COMPILE NIX_LDFLAGS NIX_STORE NIX_BUILD_CORES IN_NIX_SHELL
        LOCALE_ARCHIVE GUIX_PROFILE GUIX_LOCPATH
        """,
        home=".nix-profile .local/state/nix/profile .guix-profile",
    ),
    ToolChain(
        name="numbers and models",
        variables="""
        CUDA_HOME CUDA_PATH CUDA_VISIBLE_DEVICES ROCM_PATH HIP_VISIBLE_DEVICES OMP_NUM_THREADS MKL_NUM_THREADS
        OPENBLAS_NUM_THREADS NUMEXPR_NUM_THREADS TF_CPP_MIN_LOG_LEVEL TF_ENABLE_ONEDNN_OPTS TOKENIZERS_PARALLELISM
        XLA_FLAGS HF_HUB_OFFLINE TRANSFORMERS_OFFLINE
        """,
        located={"CUDA_HOME": WHOLE, "CUDA_PATH": WHOLE, "ROCM_PATH": WHOLE},
    ),
)

VARIABLES: Final = frozenset(chain.from_iterable(row.variables.split() for row in TOOLCHAINS))
"""Every variable that reaches commands."""
VARIABLE_PREFIXES: Final = ("LC_",)
"""Beginnings of variables that reach commands."""
HOME_FOLDERS: Final = tuple(chain.from_iterable(row.home.split() for row in TOOLCHAINS))
"""Parts of a home that commands may read, relative to it."""
LOCATED: Final = tuple((name, parts) for row in TOOLCHAINS for name, parts in row.located.items())
"""Variables that name a folder, with its parts that commands may read."""


SECRET_NAME_PARTS: Final = frozenset(
    {
        *("APIKEY", "AUTH", "AUTHORIZATION", "BEARER", "COOKIE", "CREDENTIAL", "CREDENTIALS", "CREDS"),
        *("KEY", "KEYS", "PASS", "PASSPHRASE", "PASSWD", "PASSWORD", "PASSWORDS", "PAT", "PRIVATE", "PWD"),
        *("SECRET", "SECRETS", "SIGNATURE", "TOKEN", "TOKENS", "WEBHOOK"),
    }
)  # fmt: skip
"""A name with one of these between underscores names a secret."""
SECRET_ENDINGS: Final = (
    "APIKEY",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "SECRET",
    "TOKEN",
    "CREDENTIALS",
)
NO_SECRETS: Final = frozenset({"PWD", "OLDPWD", "PATH", "HOME"})
PASSWORD_IN_URL: Final = re.compile(
    r"[a-z][a-z0-9+.-]*://[^@\s]*:[^@\s]+@|(?:https?|socks[0-9a-z]*)://[^/@\s]+@", re.IGNORECASE
)
"""Over HTTP a user without a password is a token."""
PROXY: Final = "_PROXY"
"""Ends the names of variables with the address of a proxy: that may come without its scheme, `user:password@host`."""

LOADERS: Final = frozenset(
    {
        # Shells
        *("BASH_ENV", "ENV", "PROMPT_COMMAND", "PS0", "PS4", "SHELLOPTS", "BASHOPTS", "IFS", "CDPATH"),
        *("GLOBIGNORE", "ZDOTDIR", "FPATH", "BASH_LOADABLES_PATH", "BASH_XTRACEFD", "EXECIGNORE"),
        # The C library
        *("GCONV_PATH", "GLIBC_TUNABLES", "HOSTALIASES", "LOCPATH", "MALLOC_TRACE", "NIS_PATH", "NLSPATH"),
        *("RESOLV_HOST_CONF", "RES_OPTIONS", "TZDIR"),
        # Interpreters
        *("PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONEXECUTABLE"),
        *("PYTHONUSERBASE", "PYTHONWARNINGS", "PYTHONPLATLIBDIR", "PYTEST_ADDOPTS", "PYTEST_PLUGINS"),
        *("NODE_OPTIONS", "NODE_REPL_EXTERNAL_MODULE", "PERL5OPT", "PERL5DB", "PERL5LIB", "PERLLIB"),
        *("RUBYOPT", "RUBYLIB", "LUA_INIT", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"),
        *("R_PROFILE", "R_PROFILE_USER", "R_ENVIRON", "R_ENVIRON_USER", "PHP_INI_SCAN_DIR", "PHPRC"),
        # Builders
        *("RUSTC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER", "RUSTDOC"),
        *("MAKEFLAGS", "GNUMAKEFLAGS", "MAKEFILES", "CMAKE_TOOLCHAIN_FILE", "GOFLAGS", "MAVEN_OPTS"),
        *("GRADLE_OPTS", "SBT_OPTS", "ANT_OPTS"),
        # Programs that are run for others
        *("LESSOPEN", "LESSCLOSE", "MANPAGER", "BROWSER", "SSH_ASKPASS", "SUDO_ASKPASS", "GIT_ASKPASS"),
        *("FCEDIT", "HISTFILE", "INPUTRC", "TERMINFO", "TERMINFO_DIRS", "TERMCAP", "RIPGREP_CONFIG_PATH"),
        *("WGETRC", "CURL_HOME", "FZF_DEFAULT_COMMAND", "FZF_DEFAULT_OPTS", "TAR_OPTIONS", "RSYNC_RSH"),
    }
)  # fmt: skip
"""Variables that name code or options of other programs."""
LOADER_PREFIXES: Final = (
    "LD_",
    "DYLD_",
    "BASH_FUNC_",
    "LUA_INIT_",
    "CARGO_TARGET_",
    "_RLD",
    "PIP_CONFIG",
)
GIT_KEPT: Final = re.compile(
    "GIT_("
    + "|".join(
        (
            "(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)|EDITOR|SEQUENCE_EDITOR|PAGER|TERMINAL_PROMPT",
            "OPTIONAL_LOCKS|CONFIG_NOSYSTEM|CEILING_DIRECTORIES|SSL_CAINFO|SSL_CAPATH",
        )
    )
    + ")"
)
"""Of git's variables only these; the others say what it runs, and where. Editors and pagers are set by the tool."""
NPM_RUNS: Final = re.compile(
    r"npm_config_(node_options|script_shell|shell|git|init_module|globalconfig|userconfig)",
    re.IGNORECASE,
)

DOORS: Final = frozenset(
    {
        *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_AGENT_LAUNCHER", "GPG_AGENT_INFO", "GPG_TTY", "XAUTHORITY"),
        *("DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"),
        *("XDG_RUNTIME_DIR", "TMUX", "TMUX_PANE", "STY", "NVIM", "NVIM_LISTEN_ADDRESS", "EMACS_SERVER_FILE"),
        *("DOCKER_HOST", "CONTAINER_HOST", "GNOME_KEYRING_CONTROL", "SESSION_MANAGER", "PULSE_SERVER"),
        *("I3SOCK", "SWAYSOCK", "KITTY_LISTEN_ON", "WEZTERM_UNIX_SOCKET", "INVOCATION_ID", "NOTIFY_SOCKET"),
        *("LISTEN_FDS", "LISTEN_PID", "JOURNAL_STREAM", "TMPDIR", "TMP", "TEMP"),
    }
)  # fmt: skip
"""Ways to other programs of the user, which are closed inside."""
DOOR_PREFIXES: Final = ("VSCODE_", "TILLER_", "HYPRLAND_", "ALACRITTY_")
KEPT: Final = frozenset({"TILLER_PROCESS_ID"})
"""The mark by which a command's processes are known."""


class ScrubbedEnvironment(Value, frozen=True, kw_only=True):
    """An environment, and what was taken out of it."""

    env: Mapping[str, str]
    removed: tuple[str, ...]
    """Names, sorted."""


def scrubbed(env: Mapping[str, str], *, passed: Collection[str] = ()) -> ScrubbedEnvironment:
    """Return the variables that reach a process of a tool.

    Args:
        env: The user's environment.
        passed: Variables that the user's own settings list besides: names, or prefixes that end in `*`. Only a whole
            name admits a variable that is a secret, a loader of code or a way to another program.
    """
    # An allowlist: no list of secrets' names is complete (decision 0062).
    kept = {name: value for name, value in env.items() if _passes(name, value, passed)}
    return ScrubbedEnvironment(env=kept, removed=tuple(sorted(env.keys() - kept.keys())))


def is_secret(name: str, value: str) -> bool:
    """Return whether a variable holds a secret, by its name or because it is an address with a password."""
    if name in NO_SECRETS:
        return False
    upper = name.upper()
    by_name = bool(SECRET_NAME_PARTS.intersection(upper.split("_"))) or upper.endswith(
        SECRET_ENDINGS
    )
    is_login = upper.endswith(PROXY) and upper != f"NO{PROXY}" and "@" in value
    return by_name or is_login or PASSWORD_IN_URL.search(value) is not None


def steers_programs(name: str) -> bool:
    """Return whether a variable makes programs load or run other code, or leads to other programs of the user."""
    return _runs_others(name) or _is_door(name)


def _passes(name: str, value: str, passed: Collection[str]) -> bool:
    if name in KEPT or name in passed:
        return True
    beginnings = tuple(one[:-1] for one in passed if one.endswith("*"))
    is_listed = name in VARIABLES or name.startswith((*VARIABLE_PREFIXES, *beginnings))
    return is_listed and not is_secret(name, value) and not steers_programs(name)


def _runs_others(name: str) -> bool:
    if name.startswith("GIT_"):
        return GIT_KEPT.fullmatch(name) is None
    return (
        name in LOADERS or name.startswith(LOADER_PREFIXES) or NPM_RUNS.fullmatch(name) is not None
    )


def _is_door(name: str) -> bool:
    return name in DOORS or name.startswith(DOOR_PREFIXES)
