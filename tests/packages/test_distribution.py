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
from tests.support.clients.server import Ground
from tests.support.harness.shared import ROOT
from tests.support.packages import SUPPORTED, interpreter, spend_the_first_minute

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
    program = _installed(archive, python=Path(sys.executable), into=tmp_path / "venv")
    spend_the_first_minute(ground, [str(program)])


@pytest.mark.e2e
@pytest.mark.parametrize("version", SUPPORTED)
def test_the_first_minute_passes_on_every_interpreter(
    built: tuple[Path, Path], ground: Ground, tmp_path: Path, version: str
) -> None:
    if version == "{}.{}".format(*sys.version_info):
        pytest.skip(f"Python {version} runs the test above")
    python = interpreter(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    program = _installed(built[0], python=python, into=tmp_path / "venv")
    spend_the_first_minute(ground, [str(program)])


def _installed(archive: Path, *, python: Path, into: Path) -> Path:
    """Install an archive into a new virtual environment, and return its `tiller`."""
    subprocess.run([str(python), "-m", "venv", str(into)], check=True)
    argv = [str(into / "bin" / "pip"), "install", "-q", "-c", str(ROOT / "constraints.txt")]
    apart = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # noqa: TID251 - as above
    subprocess.run([*argv, str(archive)], cwd=into, env=apart, check=True, capture_output=True)
    return into / "bin" / "tiller"


def test_every_supported_version_is_a_classifier() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    prefix = "Programming Language :: Python :: "
    listed = [line.removeprefix(prefix) for line in project["classifiers"] if prefix in line]
    assert tuple(listed) == SUPPORTED
