"""Extension packages: installed whole or not at all, trusted before their code runs, refused when they were changed."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import pytest

from agent_core.extensions.package_lock import FOLDER
from agent_core.kernel.private_file import locked
from agent_core.resources.paths import EXTENSION_LOCK
from tests.extensions.guide import PAGE, blocks, unit_test
from tests.storage.faults.small_disk import small_disk
from tests.support.clients.server import TILLER, Ground, calls, says, tool_texts
from tests.support.programs.pty_screen import terminal
from tests.support.programs.terminal import Ran, tiller

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

SHELL = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARKER = "ran.txt"
WAIT_S = 20.0


def new(ground: Ground, name: str = "words", source: str | None = None) -> Path:
    """Write a package into the workspace; `source` replaces its code."""
    assert tiller(ground, "ext", "new", name).code == 0
    folder = ground.root / name
    if source is not None:
        module = name.replace("-", "_")
        _ = (folder / module / "__init__.py").write_text(source, encoding="utf-8")
    return folder


def installed(ground: Ground) -> dict[str, dict[str, str]]:
    ran = tiller(ground, "ext", "list", "--json")
    return {one["name"]: one for one in json.loads(ran.out)["packages"]}


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    ran = subprocess.run(
        ["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


def wheel_with(ground: Ground, name: str, *, mode: int = 0o100644) -> Path:
    """Pack a package, and add a member to its wheel."""
    folder = new(ground)
    wheel = Path(tiller(ground, "ext", "pack", str(folder)).out.splitlines()[0])
    with ZipFile(wheel, "a") as archive:
        member = ZipInfo(name)
        member.external_attr = mode << 16
        archive.writestr(member, "/etc/passwd")
    return wheel


def uses_the_tool(ground: Ground) -> Ran:
    ground.provider.script([calls(("words_count", {"text": "one two three"})), says("Three.")])
    return tiller(ground, "run", "count")


def test_a_new_package_is_checked_packed_installed_and_used_by_a_run(ground: Ground) -> None:
    folder = new(ground)
    checked = json.loads(tiller(ground, "ext", "check", "words", "--json").out)
    assert (checked["ok"], checked["faults"]) == (True, [])
    assert checked["registers"] == {
        "tools": ["words_count"],
        "commands": ["words"],
        "hooks": ["ToolOver"],
    }
    wheel, *sums = tiller(ground, "ext", "pack", "words").out.splitlines()
    os.utime(folder / "words" / "__init__.py", (0, 0))
    assert tiller(ground, "ext", "pack", "words").out.splitlines() == [wheel, *sums]
    assert tiller(ground, "ext", "install", wheel, "--yes").code == 0
    ran = uses_the_tool(ground)
    assert (ran.code, ran.out) == (0, "Three.\n")
    assert tool_texts(ground.provider.requests[-1]) == ["3 words"]
    assert "not used" not in tiller(ground, "ext", "list").out
    ground.configure(extensions=["!words"])
    assert "  not used: left out by extensions in " in tiller(ground, "ext", "list").out
    assert installed(ground)["words"]["leftOut"] is True
    assert tiller(ground, "ext", "remove", "words").code == 0
    assert installed(ground) == {}
    assert [*(ground.dirs.config / FOLDER).iterdir()] == []


def test_the_commands_of_the_guide_lead_to_an_installed_package(ground: Ground) -> None:
    (commands,) = [one for one in SHELL.findall(PAGE.read_text("utf-8")) if "tiller ext new" in one]
    for line in commands.splitlines():
        program, *arguments = line.split()
        ran = tiller(ground, *arguments)
        assert (program, ran.code) == ("tiller", 0), ran
    assert [*installed(ground)] == ["tickets"]


def test_the_code_of_the_guide_is_a_package_without_faults(ground: Ground) -> None:
    for block in blocks():
        module = new(ground, "guide") / "guide" / "__init__.py"
        _ = module.write_text(block, encoding="utf-8")
        ran = tiller(ground, "ext", "check", "guide")
        assert (ran.code, "warning" in ran.out) == (0, False), ran
        shutil.rmtree(ground.root / "guide")


def test_the_test_of_the_guide_passes_with_its_tool(ground: Ground) -> None:
    folder = new(ground, "tickets")
    _ = (folder / "tickets" / "__init__.py").write_text(blocks()[1], encoding="utf-8")
    _ = (folder / "tests" / "test_tickets.py").write_text(unit_test(), encoding="utf-8")
    ran = subprocess.run(
        [TILLER[0], "-m", "unittest", "discover", "tests"],
        cwd=folder,
        env=dict(ground.env),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, "Ran 1 test" in ran.stderr) == (0, True), ran


def test_the_test_of_a_new_package_passes_and_fails_with_its_command(ground: Ground) -> None:
    folder = new(ground)
    # Compiled files do not see a change of the same size in the same second.
    command = [TILLER[0], "-B", "-m", "unittest", "discover", "tests"]
    ran = subprocess.run(
        command, cwd=folder, env=dict(ground.env), capture_output=True, text=True, check=False
    )
    assert (ran.returncode, "Ran 2 tests" in ran.stderr) == (0, True), ran
    source = folder / "words" / "__init__.py"
    _ = source.write_text(
        source.read_text("utf-8").replace('name="words")', 'name="other")'), "utf-8"
    )
    ran = subprocess.run(
        command, cwd=folder, env=dict(ground.env), capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1, ran


def test_nothing_is_installed_or_run_without_trust(ground: Ground) -> None:
    _ = new(ground, source=f"open({MARKER!r}, 'w').close()\ndef extension(api): pass\n")
    ran = tiller(ground, "ext", "install", "words")
    assert (ran.code, "add --yes" in ran.err) == (2, True)
    with terminal(ground, ["ext", "install", "words"], columns=200) as window:
        _ = window.until("Trust and install it?")
        window.line("n")
        assert window.end() == 1
    assert installed(ground) == {}
    assert [*ground.root.rglob(MARKER)] == []


def test_a_person_trusts_a_package_in_a_terminal(ground: Ground) -> None:
    _ = new(ground)
    with terminal(ground, ["ext", "install", "words"], columns=200) as window:
        screen = window.until("Trust and install it?")
        assert "tools: words_count" in screen
        window.line("y")
        assert window.end() == 0
    assert [*installed(ground)] == ["words"]


def test_a_package_from_git_is_pinned_by_its_commit_and_updated(ground: Ground) -> None:
    folder = new(ground)
    _ = git(folder, "init", "-q", "-b", "main")
    _ = git(folder, "add", "-A")
    _ = git(folder, "commit", "-qm", "first")
    first = git(folder, "rev-parse", "HEAD")
    assert tiller(ground, "ext", "install", f"git+file://{folder}@main", "--yes").code == 0
    assert installed(ground)["words"]["commit"] == first
    source = folder / "words" / "__init__.py"
    _ = source.write_text(source.read_text("utf-8") + "LATER = 1\n", encoding="utf-8")
    _ = git(folder, "commit", "-qam", "second")
    refused = tiller(ground, "ext", "update", "words")
    assert (refused.code, installed(ground)["words"]["commit"]) == (2, first)
    second = git(folder, "rev-parse", "HEAD")
    updated = tiller(ground, "ext", "update", "words", "--yes")
    assert (updated.code, first in updated.err, second in updated.err) == (0, True, True)
    assert installed(ground)["words"]["commit"] == second
    unknown = tiller(ground, "ext", "install", f"git+file://{folder}@nowhere", "--yes")
    assert (unknown.code, "'nowhere'" in unknown.complaint) == (2, True)


@pytest.mark.parametrize("change", ["changed", "added", "removed"])
def test_a_package_whose_files_differ_is_refused_in_one_sentence(
    ground: Ground, change: str
) -> None:
    _ = new(ground)
    assert tiller(ground, "ext", "install", "words", "--yes").code == 0
    (entry,) = (ground.dirs.config / FOLDER).rglob("__init__.py")
    match change:
        case "changed":
            _ = entry.write_text(f"open({MARKER!r}, 'w').close()\n", encoding="utf-8")
        case "added":
            _ = entry.with_name("pydantic.py").write_text("", encoding="utf-8")
        case _:
            entry.unlink()
    ran = uses_the_tool(ground)
    assert (ran.code, ran.err.count("'words' is not used"), f"was {change}" in ran.err) == (
        0,
        1,
        True,
    )
    assert "3 words" not in str(ground.provider.requests[-1])
    assert not (ground.root / MARKER).exists()
    assert f"was {change}" in installed(ground)["words"]["problem"]
    assert tiller(ground, "ext", "install", "words", "--yes").code == 0
    _ = uses_the_tool(ground)
    assert tool_texts(ground.provider.requests[-1]) == ["3 words"]


def test_a_kill_between_the_copy_and_the_lock_file_installs_nothing(ground: Ground) -> None:
    _ = new(ground)
    packages = ground.dirs.config / FOLDER
    command = [*TILLER, "ext", "install", "words", "--yes"]
    with locked(ground.dirs.config / EXTENSION_LOCK):
        process = subprocess.Popen(
            command, cwd=ground.root, env=dict(ground.env), stderr=subprocess.DEVNULL
        )
        until_s = time.monotonic() + WAIT_S
        while not [*packages.rglob("__init__.py")] and time.monotonic() < until_s:
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert [*packages.rglob("__init__.py")] != []
    assert installed(ground) == {}
    ground.provider.script([says("Hello")])
    ran = tiller(ground, "run", "hi")
    assert (ran.code, "words_count" in str(ground.provider.requests[-1])) == (0, False)
    assert tiller(ground, "ext", "install", "words", "--yes").code == 0
    _ = uses_the_tool(ground)
    assert tool_texts(ground.provider.requests[-1]) == ["3 words"]


def test_a_full_disk_installs_nothing_and_is_one_sentence(ground: Ground, tmp_path: Path) -> None:
    _ = new(ground)
    with small_disk(tmp_path / "disk") as disk:
        env = {"TILLER_CONFIG_DIR": str(disk.folder / "c")}
        (disk.folder / "c" / FOLDER).mkdir(parents=True)
        disk.fill()
        ran = tiller(ground, "ext", "install", "words", "--yes", env=env)
        assert (ran.code, "No space left" in ran.err.splitlines()[-1]) == (1, True), ran
        assert "Traceback" not in ran.err
        disk.free()
        assert tiller(ground, "ext", "list", env=env).out == "no extension packages are installed\n"
        assert tiller(ground, "ext", "install", "words", "--yes", env=env).code == 0


def test_two_packages_installed_at_once_are_both_there(ground: Ground) -> None:
    names = ["first", "second"]
    for name in names:
        _ = new(ground, name)
    processes = [
        subprocess.Popen(
            [*TILLER, "ext", "install", name, "--yes"],
            cwd=ground.root,
            env=dict(ground.env),
            stderr=subprocess.DEVNULL,
        )
        for name in names
    ]
    assert [process.wait() for process in processes] == [0, 0]
    assert [*installed(ground)] == names
    assert {one["problem"] for one in installed(ground).values()} == {""}


@pytest.mark.parametrize("name", ["../outside.py", "/outside.py", "words\\..\\outside.py"])
def test_a_wheel_with_a_path_outside_is_refused(ground: Ground, name: str) -> None:
    ran = tiller(ground, "ext", "install", str(wheel_with(ground, name)), "--yes")
    assert (ran.code, "lies outside of the package" in ran.complaint) == (2, True)
    assert installed(ground) == {}


@pytest.mark.parametrize("damage", ["changed", "cut"])
def test_a_damaged_wheel_is_refused_in_one_sentence(ground: Ground, damage: str) -> None:
    wheel = Path(tiller(ground, "ext", "pack", str(new(ground))).out.splitlines()[0])
    whole = wheel.read_bytes()
    half = len(whole) // 2
    # The first member is the code of the package, and more than 200 bytes even when it is packed.
    damaged = whole[:100] + bytes(100) + whole[200:] if damage == "changed" else whole[:half]
    _ = wheel.write_bytes(damaged)
    ran = tiller(ground, "ext", "install", str(wheel), "--yes")
    assert (ran.code, f"{wheel} is no usable wheel" in ran.complaint) == (2, True), ran
    assert "Traceback" not in ran.err
    assert installed(ground) == {}


def test_a_symbolic_link_is_refused_in_a_wheel_and_in_a_folder(ground: Ground) -> None:
    wheel = wheel_with(ground, "words/link.py", mode=0o120777)
    assert "is a link" in tiller(ground, "ext", "install", str(wheel), "--yes").complaint
    (ground.root / "words" / "words" / "link.py").symlink_to("/etc/passwd")
    assert "symbolic link" in tiller(ground, "ext", "install", "words", "--yes").complaint
    assert installed(ground) == {}


def test_a_name_that_is_installed_from_elsewhere_is_refused(ground: Ground) -> None:
    folder = new(ground)
    assert tiller(ground, "ext", "install", "words", "--yes").code == 0
    _ = folder.rename(ground.root / "moved")
    ran = tiller(ground, "ext", "install", "moved", "--yes")
    assert (ran.code, "tiller ext update words moved" in ran.complaint) == (2, True)


def test_another_wheel_replaces_the_installed_one(ground: Ground) -> None:
    folder = new(ground)
    project = folder / "pyproject.toml"
    _ = tiller(ground, "ext", "pack", "words")
    first, *_ = (folder / "dist").glob("*.whl")
    assert tiller(ground, "ext", "install", str(first), "--yes").code == 0
    # The version alone is another one: the files of the package are the same.
    text = project.read_text("utf-8")
    _ = project.write_text(text.replace('version = "0.1.0"', 'version = "0.2.0"'), "utf-8")
    packed = tiller(ground, "ext", "pack", "words")
    (second,) = (folder / "dist").glob("*0.2.0*.whl")
    same = tiller(ground, "ext", "update", "words")
    assert "another version: tiller ext update words SOURCE" in same.out
    ran = tiller(ground, "ext", "update", "words", str(second), "--yes")
    assert ran.code == 0, ran.err
    (entry,) = installed(ground).values()
    assert (entry["version"], entry["source"]) == ("0.2.0", str(second))
    # What the author sees is what the user sees.
    _, digest, pin = packed.out.splitlines()
    assert f"wheel sha256:{digest.split()[1]}" in ran.err
    assert f"new pin 0.2.0 {pin.split()[1]}" in ran.err
    assert f"old source {first}" in ran.err


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("def extension(api):\n    pass\n\nraise ValueError('no')\n", 4, "ValueError: no"),
        ("def extension(api:\n", 1, "SyntaxError"),
        ("import missing_library\n", 1, "No module named 'missing_library'"),
        ("VALUE = 1\n", 0, "has no function extension(api)"),
        ("import os\nos._exit(3)\n", 0, "exit code 3"),
        (
            "def extension(api):\n    @api.shortcut('ctrl+c')\n    def stop(ctx): pass\n",
            2,
            "'ctrl+c' is reserved",
        ),
        (
            "def extension(api):\n    @api.command()\n    def status(text, ctx): pass\n",
            2,
            "'status' is taken",
        ),
        (
            (
                "def extension(api):\n"
                "    @api.tool(description='d', parameters={'type': 'string'})\n"
                "    def odd(arguments, ctx): pass\n"
            ),
            2,
            "the schema of the tool 'odd'",
        ),
        (
            (
                "def extension(api):\n"
                "    @api.tool(description='d')\n"
                "    def odd(arguments, ctx): pass\n"
            ),
            2,
            "annotate its first parameter",
        ),
    ],
    ids=["raises", "syntax", "import", "entry", "exit", "key", "command", "schema", "untyped"],
)
def test_a_fault_has_its_file_and_line_and_keeps_a_package_out(
    ground: Ground, source: str, line: int, message: str
) -> None:
    folder = new(ground, source=source)
    ran = tiller(ground, "ext", "check", "words", "--json")
    (fault,) = [one for one in json.loads(ran.out)["faults"] if one["level"] == "error"]
    file = str(folder / "words" / "__init__.py")
    assert (ran.code, fault["file"], fault["line"]) == (1, file, line), fault
    assert message in fault["message"]
    refused = tiller(ground, "ext", "install", "words", "--yes")
    assert (refused.code, "words was not installed" in refused.err) == (2, True)
    assert installed(ground) == {}


def test_a_slow_start_is_a_fault(ground: Ground) -> None:
    _ = new(ground)
    ran = tiller(ground, "ext", "check", "words", "--start-limit", "0.00001")
    assert (ran.code, "to load, and the limit is" in ran.out) == (1, True)


@pytest.mark.parametrize(
    ("old", "new_text", "message"),
    [
        ('name = "words"', 'name = "Wor ds"', "project.name is 'Wor ds'"),
        ('version = "0.1.0"', 'version = "../1"', "project.version is '../1'"),
        ('"words:extension"', '"missing:extension"', "there is no missing.py"),
        ('"tiller.extensions"', '"other.group"', "it needs exactly one, 'words'"),
        (
            '[project.entry-points."tiller.extensions"]\nwords = "words:extension"',
            'entry-points = "words"',
            "it needs exactly one, 'words'",
        ),
        ("[project]", '[project]\ndependencies = ["requests"]', "installs no dependencies"),
        ("[project]", "[project", "it cannot be read"),
    ],
    ids=["name", "version", "module", "group", "text", "dependencies", "toml"],
)
def test_a_fault_of_the_declaration_has_its_line(
    ground: Ground, old: str, new_text: str, message: str
) -> None:
    path = new(ground) / "pyproject.toml"
    text = path.read_text("utf-8").replace(old, new_text, 1)
    _ = path.write_text(text, encoding="utf-8")
    ran = tiller(ground, "ext", "check", "words", "--json")
    faults = json.loads(ran.out)["faults"]
    assert (ran.code, {one["file"] for one in faults}) == (1, {str(path)})
    assert [one for one in faults if message in one["message"] and one["line"] > 0] != [], faults


def test_a_file_in_place_of_a_package_is_told(ground: Ground) -> None:
    file = new(ground) / "words" / "__init__.py"
    ran = tiller(ground, "ext", "check", str(file))
    assert (ran.code, "a package is a folder that has one" in ran.out) == (1, True), ran


def test_a_damaged_lock_file_is_named_and_runs_go_on(ground: Ground) -> None:
    _ = (ground.dirs.config / EXTENSION_LOCK).write_text("{", encoding="utf-8")
    assert EXTENSION_LOCK in tiller(ground, "ext", "list").complaint
    ground.provider.script([says("Hello")])
    ran = tiller(ground, "run", "hi")
    assert (ran.code, ran.out, ran.err.count(EXTENSION_LOCK)) == (0, "Hello\n", 1)
