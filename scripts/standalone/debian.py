"""Builds a Debian package of a standalone program with nfpm.

python -m scripts.standalone.debian TREE INTO
"""

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from scripts.standalone.licences import NOTICES
from scripts.vsix.wheels import ROOT
from tiller_server import VERSION

ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
DESCRIPTION: Final = """\
coding agent for the editor, the terminal and scripts
Tiller edits files, runs commands and answers questions in a project, over the
Language Server Protocol, in a terminal, in a browser and in scripts. The
package holds the Python that runs it.
"""


def main() -> int:
    """Build the package and print its name."""
    parser = argparse.ArgumentParser(description=__doc__)
    _ = parser.add_argument("tree", type=Path, help="the folder of a standalone program")
    _ = parser.add_argument("into", type=Path, help="the folder of the package")
    options = parser.parse_args()
    package = build(options.tree, options.into)
    sys.stdout.write(f"{package}: {package.stat().st_size / 1e6:.1f} MB\n")
    return 0


def build(tree: Path, into: Path) -> Path:
    """Build the package of a program, and return it."""
    machine = tree.name.rpartition("-")[2]
    about = json.loads((tree / "python/standalone.json").read_text(encoding="utf-8"))
    stage = tree.parent / "debian"
    stage.mkdir(exist_ok=True)
    page = (ROOT / "packaging/debian/tiller.1").read_bytes()
    (stage / "tiller.1.gz").write_bytes(gzip.compress(page, 9, mtime=0))
    for path in (ROOT / "LICENSE", ROOT / "README.md", tree / NOTICES):
        _ = shutil.copyfile(path, stage / path.name)
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))  # noqa: TID251 - as builds read it everywhere
    # nfpm writes the times of the files.
    for path in (tree, *tree.rglob("*"), *stage.iterdir()):
        os.utime(path, (epoch, epoch), follow_symlinks=False)
    config = stage / "nfpm.json"
    config.write_text(json.dumps(_config(tree, stage, machine, about["glibc"])), encoding="utf-8")
    package = into / f"tiller_{VERSION}_{ARCHITECTURES[machine]}.deb"
    nfpm = Path(sys.executable).with_name("nfpm")
    argv = [str(nfpm), "package", "-p", "deb", "-f", str(config), "-t", str(package)]
    env = {"SOURCE_DATE_EPOCH": str(epoch), "PATH": os.defpath}
    _ = subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, env=env)  # noqa: S603 - a program of the build
    return package


def _config(tree: Path, stage: Path, machine: str, glibc: str) -> dict[str, object]:
    """Return what nfpm reads; JSON is YAML."""
    documents = "/usr/share/doc/tiller"
    return {
        "name": "tiller",
        "arch": ARCHITECTURES[machine],
        "platform": "linux",
        "version": VERSION,
        "section": "devel",
        "priority": "optional",
        "maintainer": "The maintainers of Tiller <maintainers@tiller.invalid>",
        "description": DESCRIPTION,
        "license": "MIT",
        "depends": [f"libc6 (>= {glibc})"],
        "recommends": ["bubblewrap", "ca-certificates", "git"],
        "contents": [
            {"src": str(tree), "dst": "/usr/lib/tiller", "type": "tree"},
            {"src": "/usr/lib/tiller/bin/tiller", "dst": "/usr/bin/tiller", "type": "symlink"},
            {"src": str(stage / "tiller.1.gz"), "dst": "/usr/share/man/man1/tiller.1.gz"},
            {"src": str(stage / "LICENSE"), "dst": f"{documents}/copyright"},
            {"src": str(stage / NOTICES), "dst": f"{documents}/{NOTICES}"},
            {"src": str(stage / "README.md"), "dst": f"{documents}/README.md"},
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
