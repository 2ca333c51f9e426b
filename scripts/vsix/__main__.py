"""Builds `build/tiller-<target>-<version>.vsix`: the extension, with Tiller and all that it needs as wheels.

    python -m scripts.vsix [TARGET]

Wants npm on the PATH, and what `npm install` puts in `vscode-client`.
"""

import argparse
import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from scripts.vsix.notices import written
from scripts.vsix.targets import TARGETS, Target, target_of
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
    target = TARGETS[parser.parse_args().target]
    _say(f"Building the extension for {target.name} ...")
    for script in ("build", "web"):
        _run("npm", "run", "--silent", script, cwd=CLIENT)
    stage = BUILD / "vsix" / target.name / "extension"
    shutil.rmtree(stage, ignore_errors=True)
    wheels = stage / "wheels"
    wheels.mkdir(parents=True)
    collect(target, kept=BUILD / "vsix" / target.name / "kept", into=wheels)
    _stage(stage)
    made = _package(target, stage)
    _say_sizes(made, wheels)
    return 0


def _stage(stage: Path) -> None:
    """Put in what the extension consists of, and nothing else that lies around."""
    about = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    # What is bundled needs no installing, and there is nothing to build.
    staged = {name: value for name, value in about.items() if name not in _LEFT_OUT}
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


def _package(target: Target, stage: Path) -> Path:
    version = json.loads((stage / "package.json").read_text(encoding="utf-8"))["version"]
    made = BUILD / f"tiller-{target.name}-{version}.vsix"
    vsce = CLIENT / "node_modules" / ".bin" / "vsce"
    options = ("--no-dependencies", "--allow-missing-repository", "--no-rewrite-relative-links")
    _run(str(vsce), "package", *options, "--target", target.name, "--out", str(made), cwd=stage)
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


def _run(*command: str, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True)  # noqa: S603 - words of ours
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        sys.exit(f"{command[0]} {command[1]} failed in {cwd}")


if __name__ == "__main__":
    sys.exit(main())
