"""The wheel and the sdist: what they hold, and the first minute of a user who has nothing else."""

import hashlib
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.daemon.conftest import ground
from tests.support.clients.server import Ground, calls, says
from tests.support.harness.shared import ROOT

__all__ = ["ground"]

pytestmark = [pytest.mark.timeout(300)]
EPOCH = "1700000000"
NEEDED = {
    "agent_core/py.typed",
    "tiller_server/py.typed",
    "agent_core/assembly/schemas/settings.schema.json",
}


def _build(folder: Path) -> tuple[Path, Path]:
    """Build both archives and return the wheel and the sdist."""
    argv = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    env = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}  # noqa: TID251 - pip and the build need what the machine has set
    subprocess.run(argv, cwd=ROOT, env=env, check=True, capture_output=True)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return _build(tmp_path_factory.mktemp("dist"))


def test_two_builds_have_the_same_bytes(built: tuple[Path, Path], tmp_path: Path) -> None:
    again = _build(tmp_path)
    for first, second in zip(built, again, strict=True):
        assert _digest(first) == _digest(second), first.name


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_wheel_holds_the_product_and_no_tests(built: tuple[Path, Path]) -> None:
    wheel, _ = built
    names = set(zipfile.ZipFile(wheel).namelist())
    assert names >= NEEDED
    assert any(name.endswith("licenses/LICENSE") for name in names)
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"agent_core", "tiller_server"}
    assert not [name for name in names if name.endswith(".pyc")]
    # The page of `tiller web` is built, and not in git.
    page = [path for path in (ROOT / "server/tiller_server/web/page").rglob("*") if path.is_file()]
    assert names >= {path.relative_to(ROOT / "server").as_posix() for path in page}


def test_the_sdist_holds_the_sources_and_no_tests(built: tuple[Path, Path]) -> None:
    _, sdist = built
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= {"README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "PKG-INFO"}
    assert not [name for name in names if name.startswith(("tests/", "bench/", "vscode-client/"))]


def test_the_extra_all_holds_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    (line,) = extras["all"]
    listed = line.removeprefix("tillerd[").removesuffix("]").split(",")
    assert set(listed) == {name for name, brought in extras.items() if brought} - {"all"}


@pytest.mark.e2e
@pytest.mark.parametrize("form", ["wheel", "sdist"])
def test_an_installed_archive_edits_a_file_in_the_first_minute(
    built: tuple[Path, Path], ground: Ground, tmp_path: Path, form: str
) -> None:
    archive = built[0] if form == "wheel" else built[1]
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    argv = [str(venv / "bin" / "pip"), "install", "-q", "-c", str(ROOT / "constraints.txt")]
    apart = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # noqa: TID251 - as above
    subprocess.run([*argv, str(archive)], cwd=tmp_path, env=apart, check=True, capture_output=True)

    def tiller(*arguments: str) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in ground.env.items() if name != "PYTHONPATH"}
        return subprocess.run(
            [str(venv / "bin" / "tiller"), *arguments],
            cwd=ground.root,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    version = tiller("--version")
    assert (version.returncode, "0.1.0" in version.stdout) == (0, True), version
    doctor = tiller("doctor")
    assert doctor.returncode in {0, 1}, doctor
    assert "Traceback" not in doctor.stdout + doctor.stderr
    ground.configure()
    target = ground.file("a.txt", "old\n")
    write = calls(("write", {"path": str(target), "content": "new\n"}))
    ground.provider.script([write, says("Done")])
    ran = tiller("run", "Change it")
    assert (ran.returncode, target.read_text("utf-8")) == (0, "new\n"), ran
