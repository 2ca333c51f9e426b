"""`tiller ext`: write, check, pack and install extension packages."""

import argparse
import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from agent_core.extensions.discovery import is_left_out
from agent_core.extensions.package_lock import (
    LockedPackage,
    difference_of,
    package_folder,
    read_lock,
)
from agent_core.kernel.errors import ExtensionBroken, StorageUnavailable, UsageError
from agent_core.kernel.json import encode
from agent_core.resources.paths import app_paths, home_of
from agent_core.resources.settings.layers import Layer, load_settings_now
from tiller_server.cli.command_exit import code_of
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import DONE, FAILED
from tiller_server.cli.extension_packages.check import START_LIMIT_S, ProbeResult, probe_package
from tiller_server.cli.extension_packages.project import (
    ExtensionPackage,
    declared_parts,
    read_package,
    usable,
)
from tiller_server.cli.extension_packages.source import FetchedPackage, fetched
from tiller_server.cli.extension_packages.store import install_package, remove_package
from tiller_server.cli.extension_packages.template import write_package
from tiller_server.cli.extension_packages.wheel import wheel_bytes, wheel_name

EXAMPLE: Final = (
    "example: tiller ext new tickets && tiller ext check tickets && tiller ext install ./tickets"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    parser.set_defaults(json=False, yes=False)
    verbs = parser.add_subparsers(
        dest="verb", required=True, metavar="new|check|pack|install|list|update|remove"
    )
    new = verbs.add_parser("new", help="write a small package that works")
    _ = new.add_argument("name", metavar="NAME", help="a-z, 0-9 and -")
    _ = new.add_argument("folder", metavar="DIR", nargs="?", help="a new folder [NAME]")
    check = verbs.add_parser(
        "check", help="load a package in a process of its own, list its faults"
    )
    pack = verbs.add_parser("pack", help="write a wheel; the same files make the same bytes")
    for verb in (check, pack):
        _ = verb.add_argument("folder", metavar="DIR", nargs="?", default=".", help="[.]")
    _ = check.add_argument(
        "--start-limit",
        metavar="SECONDS",
        type=float,
        default=START_LIMIT_S,
        help=f"longest time to load [{START_LIMIT_S:g}]",
    )
    _ = pack.add_argument("-o", "--output", metavar="DIR", help="folder of the wheel [DIR/dist]")
    install = verbs.add_parser("install", help="install a package for you, pinned by its content")
    _ = install.add_argument(
        "source", metavar="SOURCE", help="a folder, a wheel, or git+https://HOST/PATH@REF"
    )
    listing = verbs.add_parser("list", help="list the installed packages")
    update = verbs.add_parser("update", help="fetch installed packages again from their sources")
    _ = update.add_argument("name", metavar="NAME", nargs="?", help="[all]")
    _ = update.add_argument(
        "source",
        metavar="SOURCE",
        nargs="?",
        help="another wheel, folder or git URL [as installed]",
    )
    remove = verbs.add_parser("remove", help="remove an installed package")
    _ = remove.add_argument("name", metavar="NAME")
    for verb in (install, update):
        _ = verb.add_argument(
            "--yes", action="store_true", help="trust the package without a question"
        )
    for verb in (check, listing):
        _ = verb.add_argument("--json", action="store_true", help="as JSON")


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; return the exit code."""
    work = partial(_run, options, environment)
    return code_of("ext", work, debug=False, as_json=options.json)


def _run(options: argparse.Namespace, environment: Environment) -> int:
    verbs: Mapping[str, Callable[[argparse.Namespace, Environment], int]] = {
        "new": _new,
        "check": _check,
        "pack": _pack,
        "install": _install,
        "list": _list,
        "update": _update,
        "remove": _remove,
    }
    try:
        return verbs[options.verb](options, environment)
    except OSError as error:
        state = "; nothing was installed" if options.verb == "install" else ""
        message = f"{error.filename or 'a file'} could not be read or written: {error.strerror or error}{state}"
        raise StorageUnavailable(message) from error


def _new(options: argparse.Namespace, environment: Environment) -> int:
    _ = environment
    folder = Path(options.folder or options.name)
    write_package(options.name, folder)
    return _write_line(f"wrote {folder}; next: tiller ext check {folder}")


def _check(options: argparse.Namespace, environment: Environment) -> int:
    package, faults = read_package(Path(options.folder).resolve())
    result = ProbeResult(faults=tuple(faults))
    if package is not None:
        result = probe_package(package, environment.variables, limit_s=options.start_limit)
    is_usable = all(fault.level != "error" for fault in result.faults)
    if options.json:
        body = {
            "ok": is_usable,
            "faults": [
                {
                    "file": fault.file,
                    "line": fault.line,
                    "level": fault.level,
                    "message": fault.message,
                }
                for fault in result.faults
            ],
            "registers": {kind: [*names] for kind, names in result.parts.items()},
        }
        _ = _write_line(encode(body).decode())
    else:
        lines = [ascii(str(fault))[1:-1] for fault in result.faults]
        if is_usable and package is not None:
            lines += [f"{package.name} {package.version} can be loaded ({result.start_s:.2f} s)"]
            lines += _part_lines(result.parts)
        _ = _write_line("\n".join(lines))
    return DONE if is_usable else FAILED


def _part_lines(parts: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"  {kind}: {', '.join(map(_plain, names))}" for kind, names in parts.items()]


def _plain(text: str) -> str:
    """Return a text in characters that a terminal only shows."""
    return ascii(text)[1:-1]


def _pack(options: argparse.Namespace, environment: Environment) -> int:
    folder = Path(options.folder).resolve()
    _ = environment
    package = usable(read_package(folder))
    output = Path(options.output) if options.output else folder / "dist"
    output.mkdir(parents=True, exist_ok=True)
    data = wheel_bytes(package)
    path = output / wheel_name(package)
    _ = path.write_bytes(data)
    pin = _pin_of(package)
    sums = f"sha256 {hashlib.sha256(data).hexdigest()}\npin sha256:{pin}"
    return _write_line(f"{path}\n{sums}")


def _install(options: argparse.Namespace, environment: Environment) -> int:
    config = app_paths(environment.variables).config
    with fetched(options.source, environment.variables) as it:
        before = read_lock(config).get(it.package.name)
        if before is not None and before.source != it.source:
            message = (
                f"a package {it.package.name!r} is installed from {before.source}; "
                f"`tiller ext update {it.package.name} {options.source}` replaces it"
            )
            raise ExtensionBroken(message)
        return _install_fetched(config, it, before, options=options, environment=environment)


def _install_fetched(
    config: Path,
    it: FetchedPackage,
    before: LockedPackage | None,
    *,
    options: argparse.Namespace,
    environment: Environment,
) -> int:
    """Ask for trust, check the package, and install it."""
    package = it.package
    pin = _pin_of(package)
    is_same = before is not None and (before.pin, before.version) == (pin, package.version)
    if before is not None and is_same and not _difference(config, package.name, before):
        hint = f"; another version: tiller ext update {package.name} SOURCE" if it.is_fixed else ""
        return _write_line(f"{package.name} {before.version} is installed and unchanged{hint}")
    lines = [f"{_plain(package.name)} {_plain(package.version)} from {_plain(it.source)}"]
    lines += [f"  {_plain(package.description)}"] if package.description else []
    lines += [f"  commit {it.commit}"] if it.commit else []
    lines += [f"  wheel sha256:{it.digest}"] if it.digest else []
    if before is not None:
        lines += [f"  old source {_plain(before.source)}"] if before.source != it.source else []
        lines += [f"  old pin {before.version} sha256:{before.pin} {before.commit}".rstrip()]
    lines += [f"  {'new pin' if before else 'pin'} {package.version} sha256:{pin}"]
    lines += _part_lines(declared_parts(package)) or ["  its source registers nothing by name"]
    _ = sys.stderr.write("\n".join(lines) + "\n")
    if not options.yes and not _agrees():
        _ = _write_line(f"{package.name} was not installed")
        return FAILED
    for fault in probe_package(package, environment.variables).faults:
        if fault.level == "error":
            message = f"{package.name} was not installed: {fault}"
            raise ExtensionBroken(message)
    entry = install_package(config, it, replaces=before.pin if before else None)
    return _write_line(f"installed {package.name} {entry.version} (sha256:{entry.pin})")


def _pin_of(package: ExtensionPackage) -> str:
    return LockedPackage(version="", source="", entry="", files=package.files).pin


def _agrees() -> bool:
    if not sys.stdin.isatty():
        message = "a new package needs your trust, and there is no terminal to answer on: add --yes"
        raise UsageError(message)
    _ = sys.stderr.write("Its code runs with your rights. Trust and install it? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _difference(config: Path, name: str, package: LockedPackage) -> str:
    return difference_of(package, package_folder(config, name, package))


def _list(options: argparse.Namespace, environment: Environment) -> int:
    paths = app_paths(environment.variables)
    config = paths.config
    packages = read_lock(config)
    states = {name: _difference(config, name, package) for name, package in packages.items()}
    settings = load_settings_now((Layer(name="user", content=paths.settings),)).values
    left_out = {
        name
        for name, package in packages.items()
        if is_left_out(
            package_folder(config, name, package) / package.entry,
            settings.extensions,
            home=home_of(environment.variables),
        )
    }
    if options.json:
        body = {
            "packages": [
                {
                    "name": name,
                    "version": package.version,
                    "source": package.source,
                    "commit": package.commit,
                    "sha256": package.pin,
                    "problem": states[name],
                    "leftOut": name in left_out,
                }
                for name, package in packages.items()
            ]
        }
        return _write_line(encode(body).decode())
    lines: list[str] = []
    for name, package in packages.items():
        lines += [f"{name} {package.version}  sha256:{package.pin[:16]}  {_plain(package.source)}"]
        lines += [f"  not used: {_plain(states[name])}"] if states[name] else []
        lines += (
            [f"  not used: left out by extensions in {paths.settings}"] if name in left_out else []
        )
    return _write_line("\n".join(lines) or "no extension packages are installed")


def _update(options: argparse.Namespace, environment: Environment) -> int:
    config = app_paths(environment.variables).config
    packages = read_lock(config)
    if options.name is not None and options.name not in packages:
        message = f"no package {options.name!r} is installed; `tiller ext list` lists them"
        raise ExtensionBroken(message)
    code = DONE
    for name in [options.name] if options.name else [*packages]:
        before = packages[name]
        source = options.source or before.source
        with fetched(source, environment.variables) as it:
            if it.package.name != name:
                message = f"{source} has the package {it.package.name!r}, not {name!r}; nothing was updated"
                raise ExtensionBroken(message)
            code |= _install_fetched(config, it, before, options=options, environment=environment)
    return code


def _remove(options: argparse.Namespace, environment: Environment) -> int:
    remove_package(app_paths(environment.variables).config, options.name)
    return _write_line(f"removed {options.name}")


def _write_line(text: str) -> int:
    _ = sys.stdout.write(f"{text}\n")
    return DONE
