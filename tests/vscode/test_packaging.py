"""What comes along in the extension: wheels for each platform, and the licences of everybody's work."""

import json
import zipfile
from pathlib import Path

import pytest

from scripts.vsix.notices import written
from scripts.vsix.targets import PYTHONS, TARGETS, target_of


@pytest.mark.parametrize(
    ("system", "machine", "name"),
    [
        pytest.param("Linux", "x86_64", "linux-x64", id="a linux of intel"),
        pytest.param("Linux", "aarch64", "linux-arm64", id="a linux of arm"),
        pytest.param("Darwin", "arm64", "darwin-arm64", id="a newer mac"),
        pytest.param("Darwin", "x86_64", "darwin-x64", id="an older mac"),
    ],
)
def test_a_machine_has_the_target_of_its_kind(system: str, machine: str, name: str) -> None:
    assert target_of(system, machine) is TARGETS[name]


def test_a_machine_without_a_target_is_told_which_there_are() -> None:
    with pytest.raises(LookupError, match=r"Windows on AMD64: name one of .*linux-x64"):
        target_of("Windows", "AMD64")


def test_pip_is_asked_for_the_wheels_of_another_platform_and_another_python() -> None:
    words = list(TARGETS["darwin-arm64"].arguments("3.14"))
    pairs = list(zip(words[::2], words[1::2], strict=True))
    assert ("--python-version", "3.14") in pairs
    assert {value for name, value in pairs if name == "--abi"} == {"cp314", "abi3", "none"}
    assert ("--platform", "macosx_11_0_arm64") in pairs
    assert not any("x86_64" in value for _, value in pairs)


def test_the_oldest_python_that_tiller_runs_on_is_served(pyproject: str) -> None:
    assert f'requires-python = ">={PYTHONS[0]}"' in pyproject


@pytest.fixture
def pyproject() -> str:
    return (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")


def _wheel(folder: Path, name: str, *headers: str, texts: dict[str, str]) -> Path:
    path = folder / f"{name}-1.0-py3-none-any.whl"
    about = "\n".join((f"Name: {name}", "Version: 1.0", *headers))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}-1.0.dist-info/METADATA", about)
        for place, text in texts.items():
            archive.writestr(f"{name}-1.0.dist-info/{place}", text)
    return path


def _package(root: Path, place: str, **about: str) -> str:
    folder = root / "node_modules" / place
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps(about), encoding="utf-8")
    (folder / "LICENSE").write_text(f"words of {about['name']}", encoding="utf-8")
    return f"node_modules/{place}/index.js"


def test_everybody_whose_work_comes_along_is_named_with_the_words_of_their_licence(
    tmp_path: Path,
) -> None:
    inputs = {
        "src/host/extension.ts": {},
        _package(tmp_path, "lit", name="lit", version="3.3.3", license="BSD-3-Clause"): {},
        _package(
            tmp_path, "@lit/reactive", name="@lit/reactive", version="2", license="BSD-3-Clause"
        ): {},
    }
    bundle = tmp_path / "panel.meta.json"
    bundle.write_text(json.dumps({"inputs": inputs}), encoding="utf-8")
    wheels = [
        _wheel(
            tmp_path, "new", "License-Expression: MIT", texts={"licenses/LICENSE": "words of new"}
        ),
        _wheel(tmp_path, "old", "License: BSD\n   and so on", texts={"COPYING": "words of old"}),
        _wheel(
            tmp_path,
            "older",
            "Classifier: License :: OSI Approved :: Apache",
            texts={"NOTICE": "words"},
        ),
        _wheel(tmp_path, "tillerd", texts={}),
    ]
    text = written([bundle], wheels, root=tmp_path)
    heads = [line for line in text.splitlines() if line.endswith(")")]
    assert heads == [
        "@lit/reactive 2 (BSD-3-Clause)",
        "lit 3.3.3 (BSD-3-Clause)",
        "new 1.0 (MIT)",
        "old 1.0 (BSD)",
        "older 1.0 (Apache)",
    ]
    for words in ("words of @lit/reactive", "words of lit", "words of new", "words of old"):
        assert words in text


def test_a_work_that_does_not_say_its_licence_stops_the_build(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nameless 1\.0 does not say its licence"):
        written([], [_wheel(tmp_path, "nameless", texts={})], root=tmp_path)
