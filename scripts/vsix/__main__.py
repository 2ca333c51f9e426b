"""Builds `build/tiller-<target>-<version>.vsix`: the extension, with Tiller and all that it needs as wheels.

    python -m scripts.vsix [TARGET] [--pre-release] [--address URL]

Wants npm on the PATH, and what `npm install` puts in `vscode-client`. The contents are checked: a file that must not be
published is not kept.
"""

import argparse
import json
import platform
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from scripts.vsix.archive import normalize
from scripts.vsix.contents import problems
from scripts.vsix.notices import written
from scripts.vsix.targets import TARGETS, Target, pre_release_version, target_of
from scripts.vsix.wheels import ROOT, collect

CLIENT: Final = ROOT / "vscode-client"
BUILD: Final = ROOT / "build"
_LEFT_OUT: Final = ("scripts", "devDependencies", "dependencies")
_BUILT: Final = (".js", ".css", ".ttf", ".schema.json")
_NOTICES: Final = "THIRD-PARTY-NOTICES.txt"


def main() -> int:
    """Build one, and say how big it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    here = target_of(platform.system(), platform.machine()).name
    _ = parser.add_argument("target", nargs="?", choices=sorted(TARGETS), default=here)
    _ = parser.add_argument(
        "--pre-release", action="store_true", help="for the pre-release channel"
    )
    _ = parser.add_argument(
        "--address", help="where the folder vscode-client is public; pictures load from there"
    )
    arguments = parser.parse_args()
    target = TARGETS[arguments.target]
    _say(f"Building the extension for {target.name} ...")
    for script in ("build", "web"):
        _ = _run("npm", "run", "--silent", script, cwd=CLIENT)
    stage = BUILD / "vsix" / target.name / "extension"
    shutil.rmtree(stage, ignore_errors=True)
    wheels = stage / "wheels"
    wheels.mkdir(parents=True)
    collect(target, kept=BUILD / "vsix" / target.name / "kept", into=wheels)
    _stage(stage, pre_release=arguments.pre_release)
    made = _package(target, stage, pre_release=arguments.pre_release, address=arguments.address)
    normalize(made, time=_commit_time())
    faults = list(problems(made, target, pre_release=arguments.pre_release))
    if faults:
        made.unlink()
        sys.exit("\n".join(faults))
    _say_sizes(made, wheels)
    return 0


def _stage(stage: Path, *, pre_release: bool) -> None:
    """Put in what the extension consists of, and nothing else that lies around."""
    about = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    # What is bundled needs no installing, and there is nothing to build.
    staged = {name: value for name, value in about.items() if name not in _LEFT_OUT}
    if pre_release:
        staged["version"] = pre_release_version(staged["version"], _commit_time())
    (stage / "package.json").write_text(json.dumps(staged, indent=2), encoding="utf-8")
    for name in ("README.md", "media"):
        source = CLIENT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy2
        copy(source, stage / name)
    for name in ("LICENSE", "CHANGELOG.md"):
        shutil.copy2(ROOT / name, stage / name)
    (stage / "dist").mkdir()
    for built in CLIENT.glob("dist/*"):
        if built.name.endswith(_BUILT):
            shutil.copy2(built, stage / "dist")
    notices = written(
        sorted(CLIENT.glob("dist/*.meta.json")),
        sorted((stage / "wheels").glob("*.whl")),
        root=CLIENT,
    )
    (stage / _NOTICES).write_text(notices, encoding="utf-8")


def _commit_time() -> datetime:
    seconds = _run("git", "log", "-1", "--format=%ct", cwd=ROOT)
    return datetime.fromtimestamp(int(seconds), UTC)


def _package(target: Target, stage: Path, *, pre_release: bool, address: str | None) -> Path:
    version = json.loads((stage / "package.json").read_text(encoding="utf-8"))["version"]
    made = BUILD / f"tiller-{target.name}-{version}.vsix"
    vsce = CLIENT / "node_modules" / ".bin" / "vsce"
    options = ["--no-dependencies", "--allow-missing-repository"]
    if pre_release:
        options.append("--pre-release")
    links = ["--baseContentUrl", address, "--baseImagesUrl", address] if address else []
    options += links or ["--no-rewrite-relative-links"]
    _ = _run(str(vsce), "package", *options, "--target", target.name, "--out", str(made), cwd=stage)
    return made


def _say_sizes(made: Path, wheels: Path) -> None:
    count = sum(1 for _ in wheels.glob("*.whl"))
    inside = sum(wheel.stat().st_size for wheel in wheels.glob("*.whl"))
    code = sum(path.stat().st_size for path in (wheels.parent / "dist").iterdir())
    parts = f"{_mb(inside)} in {count} wheels, {_mb(code)} of code"
    _say(f"{made.relative_to(ROOT)}: {_mb(made.stat().st_size)} ({parts})")


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True)  # noqa: S603 - words of ours
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        sys.exit(f"{command[0]} {command[1]} failed in {cwd}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
