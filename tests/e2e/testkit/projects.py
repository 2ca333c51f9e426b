"""Small Python projects on the disk for a session to work in."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

# The faults differ from their remedies in length: a cached module is told from a repaired one by its
# size and by seconds, and a repair may follow within the second.
TEST_COMMAND = (sys.executable, "-m", "unittest", "discover", "-q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project that a builder has written."""

    root: Path
    broken: Path
    """The file with the fault."""
    fault: str
    """The misspelt name, as it stands in the file."""
    remedy: str
    """What it should be."""

    def uri(self, path: str) -> str:
        """Give the URI of a file by its path in the project."""
        return (self.root / path).as_uri()

    def text(self, path: str) -> str:
        """Give the text of a file as it is on the disk, line ends included."""
        return (self.root / path).read_bytes().decode()

    def repaired(self) -> str:
        """Give the text of the broken file as it should be."""
        return self.broken.read_bytes().decode().replace(self.fault, self.remedy)


Builder = Callable[[Path], Project]

_SHAPES = {
    "shapes/__init__.py": '"""Areas of simple shapes."""\n',
    "shapes/area.py": (
        '"""Area of a rectangle."""\n'
        "\n"
        "\n"
        "def rectangle(width: float, height: float) -> float:\n"
        '    """Give the area."""\n'
        "    return widt * height\n"
    ),
    "tests/__init__.py": "",
    "tests/test_area.py": (
        "import unittest\n"
        "\n"
        "from shapes.area import rectangle\n"
        "\n"
        "\n"
        "class AreaTest(unittest.TestCase):\n"
        "    def test_rectangle(self):\n"
        "        self.assertEqual(rectangle(2, 3), 6)\n"
        "\n"
        "\n"
        'if __name__ == "__main__":\n'
        "    unittest.main()\n"
    ),
}


def misspelt(root: Path) -> Project:
    """Write a package whose one test fails because of a misspelt name."""
    return _project(root, _SHAPES, broken="shapes/area.py", fault="widt *", remedy="width *")


def nested(root: Path) -> Project:
    """Write a package three levels deep; the fault is in the deepest module, the test two above it."""
    files = {
        "shop/__init__.py": "",
        "shop/orders/__init__.py": "",
        "shop/orders/pricing/__init__.py": "",
        "shop/orders/pricing/rebate.py": (
            "from math import floor\n"
            "\n"
            "\n"
            "def rebate(amount: int, percent: int) -> int:\n"
            "    return flor(amount * percent / 100)\n"
        ),
        "tests/__init__.py": "",
        "tests/test_rebate.py": (
            "import unittest\n"
            "\n"
            "from shop.orders.pricing.rebate import rebate\n"
            "\n"
            "\n"
            "class RebateTest(unittest.TestCase):\n"
            "    def test_is_rounded_down(self):\n"
            "        self.assertEqual(rebate(199, 10), 19)\n"
        ),
    }
    broken = "shop/orders/pricing/rebate.py"
    return _project(root, files, broken=broken, fault="flor(", remedy="floor(")


def with_agents_md(root: Path, words: str = "Always answer in one sentence.\n") -> Project:
    """Write the misspelt project with an AGENTS.md that holds these words."""
    files = {**_SHAPES, "AGENTS.md": words}
    return _project(root, files, broken="shapes/area.py", fault="widt *", remedy="width *")


def with_crlf(root: Path) -> Project:
    """Write the misspelt project with CRLF at every line end."""
    files = {name: text.replace("\n", "\r\n") for name, text in _SHAPES.items()}
    return _project(root, files, broken="shapes/area.py", fault="widt *", remedy="width *")


def _project(
    root: Path, files: Mapping[str, str], *, broken: str, fault: str, remedy: str
) -> Project:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return Project(root=root, broken=root / broken, fault=fault, remedy=remedy)
