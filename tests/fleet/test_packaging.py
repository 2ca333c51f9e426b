"""Units of systemd, the compose file and the container file of the fleet, judged by the tools of their makers."""

import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from tests.support.harness.shared import ROOT

FOLDER = ROOT / "packaging/fleet"


def test_the_compose_file_is_valid() -> None:
    judged = subprocess.run(
        [
            *(sys.executable, "-m", "check_jsonschema"),
            *("--builtin-schema", "vendor.compose-spec", str(FOLDER / "compose.yaml")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode == 0, judged.stdout


@pytest.mark.parametrize("name", ["tiller-fleet-worker@.service", "tiller-fleet-serve.service"])
def test_systemd_reads_the_units(name: str, tmp_path: Path) -> None:
    if which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = (FOLDER / name).read_text(encoding="utf-8")
    here = unit.replace("/opt/tiller/bin/tiller", sys.executable).replace(
        "User=tiller", "User=root"
    )
    started = tmp_path / name.replace("@", "@1")
    _ = started.write_text(here, encoding="utf-8")
    judged = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(started)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (judged.returncode, judged.stderr) == (0, "")


@pytest.mark.parametrize("name", ["ci", "fleet"])
def test_the_container_files_have_no_fault(name: str) -> None:
    tool = Path(sys.executable).parent / "hadolint"
    if not tool.exists():
        pytest.skip("hadolint is not installed: it has no package for this system")
    judged = subprocess.run(
        [str(tool), str(FOLDER.parent / name / "Containerfile")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (judged.returncode, judged.stdout) == (0, "")
