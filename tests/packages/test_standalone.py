"""The standalone program and its Debian package: run in a root without Python, installed into an empty system and removed."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from shutil import which

import pytest

from tests.daemon.conftest import ground
from tests.support.clients.server import Ground
from tests.support.harness.shared import ROOT
from tests.support.packages import spend_the_first_minute
from tiller_server import VERSION

__all__ = ["ground"]

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
TOOLS = ("nfpm", "patchelf")
C_LIBRARY = ("c.so.6", "dl.so.2", "m.so.6", "pthread.so.0", "resolv.so.2", "rt.so.1", "util.so.1")

CERTIFICATES = ("SSL_CERT_DIR", "SSL_CERT_FILE")
"""Variables that name files of the machine, which are not there."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the archive of the program."""
    missing = [name for name in TOOLS if not Path(sys.executable).with_name(name).exists()]
    if missing or sys.platform != "linux":
        pytest.skip(f"not installed: {', '.join(missing)}; make release-setup installs them")
    into = tmp_path_factory.mktemp("standalone")
    _make("scripts.standalone", "--into", str(into))
    return into


@pytest.fixture(scope="module")
def program(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the unpacked folder of the program; the one that it was packed from is gone."""
    (archive,) = built.glob("*.tar.gz")
    into = tmp_path_factory.mktemp("opt")
    with tarfile.open(archive) as packed:
        packed.extractall(into, filter="tar")
    return next(into.iterdir())


def _make(*arguments: str) -> None:
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}  # noqa: TID251 - pip needs what the machine has set
    argv = [sys.executable, "-m", *arguments]
    made = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr


@pytest.fixture
def bare_root(ground: Ground, program: Path) -> list[str]:
    """Return a command line that runs the next words where only the C library, `/bin/sh` and the program are."""
    if which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    (loader,) = Path("/lib64").glob("ld-linux-x86-64.so.2")
    folder = next(Path("/lib").glob("*-linux-gnu"))
    shown = [loader, Path("/bin/sh"), *(folder / f"lib{name}" for name in C_LIBRARY)]
    folders = (ground.root.parent, ground.dirs.home.parent)
    return [
        *("bwrap", "--unshare-pid", "--proc", "/proc", "--dev", "/dev", "--die-with-parent"),
        *(word for path in shown for word in ("--ro-bind", str(path), str(path))),
        *("--ro-bind", str(program), "/opt/tiller"),
        *(word for path in folders for word in ("--bind", str(path), str(path))),
        *(word for name in CERTIFICATES for word in ("--unsetenv", name)),
        *("--setenv", "PATH", "/bin", "--chdir", str(ground.root), "--"),
    ]


def test_the_first_minute_passes_where_no_python_is(ground: Ground, bare_root: list[str]) -> None:
    looked = subprocess.run(
        [*bare_root, "/bin/sh", "-c", "command -v python3 || echo none"],
        capture_output=True,
        text=True,
        env=dict(ground.env),
        check=False,
    )
    assert looked.stdout == "none\n", looked
    spend_the_first_minute(ground, [*bare_root, "/opt/tiller/bin/tiller"])


def test_a_package_is_checked_by_the_program_alone(ground: Ground, bare_root: list[str]) -> None:
    tiller = [*bare_root, "/opt/tiller/bin/tiller"]
    for words in (["ext", "new", "greeter"], ["ext", "check", "greeter"]):
        done = subprocess.run(
            [*tiller, *words], capture_output=True, text=True, env=dict(ground.env), check=False
        )
        assert done.returncode == 0, (words, done)


def test_an_editor_is_served_by_the_program_alone(ground: Ground, bare_root: list[str]) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{},"processId":null,"rootUri":null}}'
    request = b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    answered = subprocess.run(
        [*bare_root, "/opt/tiller/bin/tiller", "lsp", "--in-process"],
        input=request,
        capture_output=True,
        env=dict(ground.env),
        timeout=60,
        check=False,
    )
    assert b'"serverInfo"' in answered.stdout, answered


def test_a_link_to_the_program_starts_it(program: Path, tmp_path: Path) -> None:
    link = tmp_path / "tiller"
    link.symlink_to(program / "bin/tiller")
    assert _version([str(link)]) == f"tiller {VERSION}\n"


def _version(argv: Sequence[str]) -> str:
    return subprocess.run(
        [*argv, "--version"], capture_output=True, text=True, check=True, env={"PATH": os.defpath}
    ).stdout


def test_no_file_names_the_folder_that_it_was_built_in(built: Path, program: Path) -> None:
    places = [str(place).encode() for place in (built, ROOT)]
    naming = [
        path.relative_to(program)
        for path in program.rglob("*")
        if path.is_file() and any(place in path.read_bytes() for place in places)
    ]
    assert naming == []


def test_the_licences_of_all_parts_are_there(program: Path) -> None:
    text = (program / "THIRD-PARTY-NOTICES.txt").read_text(encoding="utf-8")
    for part in ("CPython", "pydantic", "httpx", "libssl3"):
        assert f"\n{part} " in text, part


def test_the_list_of_parts_names_distributions_libraries_and_the_interpreter(
    program: Path, tmp_path: Path
) -> None:
    documents = pytest.importorskip(
        "scripts.release.documents", reason="make release-setup installs what lists the parts"
    )
    file = tmp_path / "parts.json"
    documents.write_parts(program, [("@lit/reactive-element", "2.1.2", "BSD-3-Clause")], file)
    names = {part["name"] for part in json.loads(file.read_bytes())["components"]}
    assert names >= {"CPython", "pydantic", "libssl3", "@lit/reactive-element"}


def test_the_debian_package_is_installed_used_and_removed(
    built: Path, program: Path, ground: Ground, tmp_path: Path
) -> None:
    if which("dpkg") is None or os.geteuid():
        pytest.skip("dpkg is not installed, or this is not root")
    _make("scripts.standalone.debian", str(program), str(tmp_path))
    (package,) = tmp_path.glob("*.deb")
    root = tmp_path / "root"
    (root / "var/lib/dpkg").mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    # Its dependency, the C library, belongs to the system around the root.
    dpkg = [
        "dpkg",
        f"--root={root}",
        "--force-depends",
        "--force-not-root",
        "--force-script-chrootless",
    ]
    subprocess.run([*dpkg, "-i", str(package)], check=True, capture_output=True)
    assert (root / "usr/bin/tiller").readlink() == Path("/usr/lib/tiller/bin/tiller")
    spend_the_first_minute(ground, [str(root / "usr/lib/tiller/bin/tiller")])
    subprocess.run([*dpkg, "-P", "tiller"], check=True, capture_output=True)
    shutil.rmtree(root / "var")
    assert [path for path in root.rglob("*") if path.is_file()] == []
