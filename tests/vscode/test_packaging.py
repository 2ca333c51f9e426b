"""What comes along in the extension: wheels for each platform, and the licences of everybody's work."""

import json
import re
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scripts.vsix.archive import normalize
from scripts.vsix.contents import REQUIRED, problems
from scripts.vsix.notices import written
from scripts.vsix.targets import PYTHONS, TARGETS, pre_release_version, target_of
from tests.support.harness.shared import ROOT

CLIENT = ROOT / "vscode-client"
LINUX = TARGETS["linux-x64"]
WHEELS = (
    "tillerd-0.1.0-py3-none-any.whl",
    "msgspec-0.20.0-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
)


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


def _vsix(
    folder: Path,
    *,
    extra: dict[str, str] | None = None,
    wheels: tuple[str, ...] = WHEELS,
    platform: str = "linux-x64",
    pre_release: bool = False,
) -> Path:
    """Write a vsix with the real description of the extension; `extra` adds files and replaces texts."""
    about = json.loads((CLIENT / "package.json").read_text("utf-8"))
    staged = {
        name: value
        for name, value in about.items()
        if name not in {"scripts", "dependencies", "devDependencies"}
    }
    texts = dict.fromkeys(REQUIRED, "text")
    texts |= {"package.json": json.dumps(staged), "media/icon.png": "", "media/screenshot.png": ""}
    texts |= {"readme.md": (CLIENT / "README.md").read_text("utf-8")}
    texts |= {f"wheels/{wheel}": "" for wheel in wheels} | (extra or {})
    marked = (
        '<Property Id="Microsoft.VisualStudio.Code.PreRelease" Value="true"/>'
        if pre_release
        else ""
    )
    path = folder / "tiller.vsix"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "extension.vsixmanifest", f'<Identity TargetPlatform="{platform}"/>{marked}'
        )
        for name, text in texts.items():
            if text != "left out":
                archive.writestr(f"extension/{name}", text)
    return path


@pytest.mark.parametrize("pre_release", [False, True], ids=["release", "pre-release"])
def test_a_vsix_as_it_should_be_has_no_problems(tmp_path: Path, pre_release: bool) -> None:
    made = _vsix(tmp_path, pre_release=pre_release)
    assert list(problems(made, LINUX, pre_release=pre_release)) == []


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ({"LICENSE.txt": "left out"}, "LICENSE.txt is missing"),
        ({"dist/panel.js": "left out"}, "dist/panel.js is missing"),
        ({"dist/panel.js.map": "{}"}, "dist/panel.js.map does not belong into it"),
        ({"src/host/extension.ts": ""}, "src/host/extension.ts does not belong into it"),
        ({"test/a.js": ""}, "test/a.js does not belong into it"),
        ({".env": "KEY=1"}, ".env does not belong into it"),
        (
            {"dist/panel.js": "x()\n//# sourceMappingURL=panel.js.map"},
            "extension/dist/panel.js names a source map",
        ),
        ({"dist/panel.css": "x" * 6_000_001}, "dist has 6000009 bytes, more than 6000000"),
        ({"media/screenshot.png": "left out"}, "media/screenshot.png is named and not there"),
        ({"media/icon.png": "left out"}, "media/icon.png is named and not there"),
        (
            {"wheels/msgspec-0.20.0-cp311-cp311-macosx_11_0_arm64.whl": ""},
            "msgspec-0.20.0-cp311-cp311-macosx_11_0_arm64.whl does not run on linux-x64",
        ),
        (
            {"wheels/tillerd-0.0.9-py3-none-any.whl": ""},
            "there is not exactly one wheel of Tiller",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_vsix_that_must_not_be_published_is_refused(
    tmp_path: Path, extra: dict[str, str], problem: str
) -> None:
    assert list(problems(_vsix(tmp_path, extra=extra), LINUX, pre_release=False)) == [problem]


def test_a_vsix_of_another_platform_or_channel_is_refused(tmp_path: Path) -> None:
    made = _vsix(tmp_path, platform="darwin-x64", pre_release=True)
    assert list(problems(made, LINUX, pre_release=False)) == [
        "the manifest does not name the platform linux-x64",
        "the manifest is that of a pre-release",
    ]


def test_the_same_contents_are_the_same_bytes(tmp_path: Path) -> None:
    archives = [tmp_path / "a.vsix", tmp_path / "b.vsix"]
    for archive, names, year in zip(
        archives, (["b", "a.whl"], ["a.whl", "b"]), (2000, 2001), strict=True
    ):
        with zipfile.ZipFile(archive, "w") as made:
            for name in names:
                made.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), name * 100)
        normalize(archive, time=datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC))
    first, second = (archive.read_bytes() for archive in archives)
    assert first == second
    with zipfile.ZipFile(archives[0]) as read:
        assert {one.date_time for one in read.infolist()} == {(2026, 1, 2, 3, 4, 6)}
        assert (read.namelist(), read.read("b")) == (["a.whl", "b"], b"b" * 100)


def test_a_vsix_that_was_built_has_no_problems() -> None:
    built = sorted((ROOT / "build").glob("tiller-*.vsix"))
    if not built:
        pytest.skip("no vsix was built: `make vsix` builds one, and checks it itself")
    for path in built:
        match = re.fullmatch(r"tiller-(\w+-\w+)-([\d.]+)\.vsix", path.name)
        assert match is not None, path.name
        pre_release = int(match[2].rpartition(".")[2]) > 1_000_000
        assert list(problems(path, TARGETS[match[1]], pre_release=pre_release)) == []


def test_a_pre_release_lies_between_its_release_and_the_next_minor_version() -> None:
    made = pre_release_version("0.1.0", datetime(2026, 11, 29, 11, 40, tzinfo=UTC))
    assert made == "0.1.2026112911"
    assert 0 < int(made.rpartition(".")[2]) < 2**31


def test_the_description_for_the_marketplace_is_whole_and_there_is_no_telemetry() -> None:
    about = json.loads((CLIENT / "package.json").read_text("utf-8"))
    assert {"AI", "Chat"} <= set(about["categories"])
    assert len(about["keywords"]) <= 30
    assert (CLIENT / about["icon"]).read_bytes()[16:24] == bytes([0, 0, 1, 0, 0, 0, 1, 0])
    assert "send no telemetry" in (CLIENT / "README.md").read_text("utf-8")
    sources = [path.read_text("utf-8") for path in (CLIENT / "src").rglob("*.ts")]
    assert len(sources) > 10
    assert [text for text in sources if "elemetryLogger" in text or "sendTelemetry" in text] == []
