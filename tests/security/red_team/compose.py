"""Composes attacks from a seed: one value on each axis, and the scripts that follow from them.

Print one with `python -m tests.security.red_team.compose SEED`.
"""

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

AXES: Final[Mapping[str, tuple[str, ...]]] = {
    "act": ("plant", "append", "overwrite", "hook", "pointer", "replace", "delete"),
    "kind": (
        *("plain", "worktree", "submodule", "bare", "git_file", "git_symlink", "commondir"),
        *("no_repository", "no_repository", "no_repository"),
    ),
    "name": (
        *("AGENTS.md", ".mcp.json", ".envrc", ".npmrc", ".gitattributes", "sitecustomize.py", "Jenkinsfile"),
        *("x.code-workspace", "aGeNtS.MD", ".vscode/tasks.json", ".idea/workspace.xml", ".husky/pre-commit"),
        *(".claude/settings.json", ".tiller/settings.json", ".github/workflows/evil.yml", ".gitea/workflows/evil.yml"),
        *(".github/prompts/evil.md", ".ssh/authorized_keys", ".cargo/config.toml", ".hg/hgrc"),
    ),
    "depth": ("0", "1", "2", "3", "4", "5", "6"),
    "number": ("1", "1", "100", "300", "6000"),
    "link": ("none", "none", "folder", "name", "name_outside", "folder_outside", "hard"),
    "rename": ("none", "parent", "top", "exchange", "after", "from_root", "from_modules"),
    "race": ("none", "none", "swapper", "during", "two_commands"),
}  # fmt: skip
REPOSITORY_ONLY: Final = frozenset({"hook", "pointer"})
FILES_OF_GIT: Final = frozenset({"worktree", "submodule", "git_file"})
"""Kinds whose `.git` is a file."""
PARTS_OF_GIT: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "worktree": (
        (
            "gitdir common; mkdir -p common/worktrees/w; cp common/HEAD common/worktrees/w",
            "echo ../.. > common/worktrees/w/commondir; echo $PWD/new/.git > common/worktrees/w/gitdir",
        ),
        "common/worktrees/w",
    ),
    "submodule": (
        ("mkdir -p mods; gitdir mods/sub; printf '\\tworktree = %s\\n' $PWD >> mods/sub/config",),
        "mods/sub",
    ),
    "git_file": (("gitdir data",), "data"),
}
"""What is prepared for a `.git` that is a file, and the folder that it names."""
LARGE: Final = "20000"
MOVED: Final = frozenset({"after", "from_root", "from_modules"})
"""Renames of what was made elsewhere, as a whole."""
NAMED_BARE: Final = ("store", "cache.d", "data", ".hidden", "objects-of-mine")


Make = Callable[[str], str]
"""Returns the command that makes a thing at a path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """One attack."""

    seed: int
    axes: Mapping[str, str]
    setup: str
    """Run by the user, before the disk is looked at."""
    commands: tuple[str, ...]
    """Contained, one after the other."""
    beside: str | None
    """Runs in another session meanwhile."""
    watched: bool
    """The victim looks while the last command runs: what git obeys must not count even then."""

    @property
    def title(self) -> str:
        """Name it for a report."""
        return f"{self.seed}-" + "-".join(value for value in self.axes.values() if value != "none")

    def script(self) -> str:
        """Return all of it as text."""
        parts = [f"# the user\n{self.setup}"]
        parts += [f"# command {at}\n{one}" for at, one in enumerate(self.commands, 1)]
        if self.beside is not None:
            parts.append(f"# another session\n{self.beside}")
        return "\n\n".join(parts)


def compose(seed: int, *, large: bool = False) -> Composition:
    """Return the composition of a seed.

    Args:
        large: Also with 20,000 other entries.
    """
    chance = random.Random(seed)  # noqa: S311 - the same again for a seed
    while True:
        axes = {axis: chance.choice(values) for axis, values in AXES.items()}
        if large and axes["number"] == "6000" and chance.random() < 0.2:
            axes["number"] = LARGE
        if _is_valid(axes):
            return _Writer(seed, axes, chance).composition()


def spread(count: int, *, pool: int = 900) -> list[int]:
    """Return seeds whose compositions together have as many pairs of values as possible. Pure.

    Compositions with thousands of entries take a second each, so there are few of them.
    """
    left = {seed: _pairs(compose(seed).axes) for seed in range(pool)}
    chosen: list[int] = []
    seen: set[tuple[tuple[str, str], ...]] = set()
    slow = count // 10
    while len(chosen) < count:
        best = max(left, key=lambda seed: (len(left[seed] - seen), -seed))
        seen |= left.pop(best)
        if compose(best).axes["number"] == "6000":
            if slow == 0:
                continue
            slow -= 1
        chosen.append(best)
    return sorted(chosen)


def _pairs(axes: Mapping[str, str]) -> set[tuple[tuple[str, str], ...]]:
    return set(combinations(axes.items(), 2))


def _is_valid(axes: Mapping[str, str]) -> bool:
    act, kind, name = axes["act"], axes["kind"], axes["name"]
    link, rename, race = axes["link"], axes["rename"], axes["race"]
    repository = kind != "no_repository"
    is_pair = name.startswith((".github/", ".gitea/"))
    refused: Sequence[bool] = (
        not repository and act in REPOSITORY_ONLY,
        kind == "commondir" and act != "pointer",
        kind == "worktree" and act in ("append", "overwrite", "replace"),
        # An entry of another file system, or one that is moved, is always something new.
        act != "plant" and (rename in ("after", "from_root", "from_modules") or "name" in link),
        act != "plant" and link == "folder_outside",
        act == "delete" and (link != "none" or rename == "exchange"),
        act in ("replace", "pointer", "hook") and link == "hard",
        link == "hard" and act == "plant" and (repository or "/" in name) and kind not in FILES_OF_GIT,
        link == "name" and repository and kind not in ("plain", "git_file"),
        link == "name_outside" and kind not in ("plain", "no_repository"),
        link == "folder_outside" and (repository or not is_pair),
        link in ("name_outside", "folder_outside") and rename in ("from_root", "from_modules"),
        rename == "top" and axes["depth"] == "0",
        race == "during" and (act not in ("pointer", "hook", "append") or not repository),
        race == "during" and rename == "parent",
        race == "two_commands" and act != "plant",
    )  # fmt: skip
    return not any(refused)


class _Writer:
    """Writes the scripts of one composition."""

    def __init__(self, seed: int, axes: Mapping[str, str], chance: random.Random) -> None:
        self.seed = seed
        self.axes = axes
        self.at = "/".join(("top", "a", "b", "c", "d", "e")[: int(axes["depth"])]) or "."
        self.bare_name = chance.choice(NAMED_BARE)
        self.by_command = chance.random() < 0.5
        """Whether the other entries come from a command of its own, or were there before."""

    def composition(self) -> Composition:
        """Put the scripts together."""
        axes = self.axes
        setup = [
            f'mkdir -p "$ROOT/{self.at}"; cd "$ROOT/{self.at}"',
            *self._others(by_command=False),
        ]
        commands: list[str] = []
        if others := "\n".join(self._others(by_command=True)):
            commands.append(f"cd {self.at}; {others}")
        if axes["act"] == "plant":
            begun, ended = self._planted()
        else:
            setup += self._existing()
            begun, ended = [], self._altered()
        ended += self._renamed_top()
        begun = [f"cd {self.at}", *begun]
        if axes["race"] == "two_commands":
            commands += ["\n".join(begun), "\n".join([f"cd {self.at}", *ended])]
        else:
            commands.append("\n".join([*begun, *ended]))
        if axes["race"] == "during":
            commands[-1] += "\nwaiting"
        beside = None
        if axes["race"] == "swapper":
            beside = "mkdir -p x; ln -sfn $HOUSE/other y; echo READY; exchanging x y"
            commands += ["true"] * 3
        return Composition(
            seed=self.seed,
            axes=axes,
            setup="\n".join(setup),
            commands=tuple(commands),
            beside=beside,
            watched=axes["race"] == "during",
        )

    def _others(self, *, by_command: bool) -> Iterator[str]:
        """Return what makes the other entries, if they are made by this side."""
        number = self.axes["number"]
        # Protected names are the user's own in any case: those of a command are taken away.
        if by_command != (self.by_command and number != "300"):
            return
        match number:
            case "100":
                yield "mkdir -p .a{1..100}/.git/{objects,refs/heads}"
                yield "for i in {1..100}; do tame_files .a$i/.git; done"
            case "300":
                yield "mkdir -p .a{1..300}; for i in {1..300}; do echo steer $i > .a$i/.envrc; done"
            case "6000" | "20000":
                yield f"many {number}"
            case _:
                return

    # Something new

    def _planted(self) -> tuple[list[str], list[str]]:
        """Return what prepares, with names that nobody looks at, and what makes a protected thing of it."""
        axes = self.axes
        parts, make = self._crown()
        final = "lnk" if axes["link"] == "folder" else "new"
        holder = ["mkdir -p new"] + (["ln -s new lnk"] if final == "lnk" else [])
        crown = self._crown_name()
        folder = crown.rpartition("/")[0]
        inside = [f'mkdir -p "{final}/{folder}"'] if folder else []
        begun = [*parts, *holder]
        match axes["rename"]:
            case "parent":
                staged = f'mkdir -p "hide/{folder}"' if folder else "mkdir -p hide"
                return ([*parts, staged, make(f"hide/{crown}")], ["rm -rf new; mv hide new"])
            case "exchange":
                staged = f'mkdir -p "twin/{folder}"' if folder else "mkdir -p twin"
                return ([*begun, staged, make(f"twin/{crown}")], ["exchange twin new"])
            case "after":
                return ([*begun, make("blob")], [*inside, f'mv blob "{final}/{crown}"'])
            case "from_root":
                made = [*begun, "mkdir -p $SECOND/in", make("$SECOND/in/blob")]
                return (made, [*inside, f'mv $SECOND/in/blob "{final}/{crown}"'])
            case "from_modules":
                made = [
                    *begun,
                    "mkdir -p $ROOT/node_modules/in",
                    make("$ROOT/node_modules/in/blob"),
                ]
                return (made, [*inside, f'mv $ROOT/node_modules/in/blob "{final}/{crown}"'])
            case _:
                return (begun, [*inside, make(f"{final}/{crown}")])

    def _crown_name(self) -> str:
        """Return the name, below its folder, by which a planted thing is obeyed."""
        if self.axes["kind"] == "bare":
            return self.bare_name
        if self.axes["kind"] != "no_repository":
            return ".git"
        name = self.axes["name"]
        if self.axes["link"] == "folder_outside":
            return name.partition("/")[0]  # a link to a folder of which another name is a part
        if "/" in name and (self.axes["link"] != "none" or self.axes["rename"] in MOVED):
            return name.rpartition("/")[0]  # the folder as a whole
        return name

    def _crown(self) -> tuple[list[str], Make]:
        """Return the parts, and what makes the thing at a path."""
        kind, link = self.axes["kind"], self.axes["link"]
        if link in ("folder_outside", "name_outside"):
            below = "" if link == "folder_outside" else "/.git" if kind == "plain" else "/.vscode"
            return [], lambda path: f'ln -s $HOUSE/other{below} "{path}"'
        if kind == "git_symlink" or (kind == "plain" and link == "name"):
            return ["gitdir data"], lambda path: f'ln -s {self._here()}/data "{path}"'
        if kind in ("plain", "bare"):
            function = "gitdir" if kind == "plain" else "bare"
            return [], lambda path: f'{function} "{path}"'
        if kind in FILES_OF_GIT:
            parts, target = PARTS_OF_GIT[kind]
            return [*parts], self._file(f"gitdir: {self._here()}/{target}")
        return self._named()

    def _here(self) -> str:
        return f"$ROOT/{self.at}"

    def _file(self, text: str) -> Make:
        if self.axes["link"] == "hard":
            return lambda path: f'echo "{text}" > plain; ln plain "{path}"'
        if self.axes["link"] == "name":
            return lambda path: f'echo "{text}" > plain; ln -s {self._here()}/plain "{path}"'
        return lambda path: f'echo "{text}" > "{path}"'

    def _named(self) -> tuple[list[str], Make]:
        name = self.axes["name"]
        folder, _, file = name.rpartition("/")
        if not folder:
            return [], self._file("evil")
        if self.axes["link"] == "name":
            parts = [f'mkdir data; echo evil > "data/{file}"']
            return parts, lambda path: f'ln -s {self._here()}/data "{path}"'
        if self._crown_name() == folder:
            return [], lambda path: f'mkdir -p "{path}"; echo evil > "{path}/{file}"'
        return [], lambda path: f'echo evil > "{path}"'

    # Something that is there

    def _existing(self) -> list[str]:
        name = self.axes["name"]
        named = [f'mkdir -p "app/{name.rpartition("/")[0]}"; echo "mine {name}" > "app/{name}"']
        return {
            "plain": ["repository app"],
            "commondir": ["repository app"],
            "worktree": ["repository app; git -C app worktree add -q ../tree"],
            "submodule": [
                "repository app; mkdir app/.git/modules",
                "git init -q --template= --separate-git-dir app/.git/modules/sub app/sub",
            ],
            "bare": [f"mkdir app; git init -q --bare --template= app/{self.bare_name}"],
            "git_file": [
                "mkdir app; git init -q --template= --separate-git-dir app/data app",
                "echo mine > app/mine.txt",
            ],
            "git_symlink": ["repository app; mv app/.git app/data; ln -s data app/.git"],
        }.get(self.axes["kind"], named)

    def _git(self) -> str:
        """Return the folder of git that is attacked, from `app` on."""
        return {
            "worktree": ".git/worktrees/tree",
            "submodule": ".git/modules/sub",
            "bare": self.bare_name,
            "git_file": "data",
            "git_symlink": "data",
        }.get(self.axes["kind"], ".git")

    def _altered(self) -> list[str]:
        axes = self.axes
        app = "app"
        lines: list[str] = []
        if axes["link"] == "folder":
            lines.append("ln -s app lnk")
            app = "lnk"
        if axes["rename"] == "exchange":
            # A twin takes the place of the folder: what is obeyed there is the twin's.
            return [*lines, "cp -r app twin", *self._edits("twin"), "exchange app twin"]
        if axes["rename"] == "parent":
            return [*lines, "mv app away", *self._edits("away"), "[ -e app ] || mv away app"]
        return [*lines, *self._edits(app)]

    def _edits(self, app: str) -> list[str]:
        axes = self.axes
        if axes["kind"] == "no_repository":
            target, content = f"{app}/{axes['name']}", "echo evil"
        else:
            target, content = f"{app}/{self._git()}/config", "evil"
        git = f"{app}/{self._git()}"
        if axes["link"] == "hard":
            sign = ">>" if axes["act"] == "append" else ">"
            return [f'ln "{target}" second; {content} {sign} second']
        gone = target if axes["kind"] == "no_repository" else git
        hooks = f"for one in {git}/hooks/pre-commit {git}/hooks/post-index-change"
        return {
            "append": [f'{content} >> "{target}"'],
            "overwrite": [f'{content} > fresh; mv -f fresh "{target}"'],
            "hook": [f"mkdir -p {git}/hooks; {hooks}; do hook > $one; chmod +x $one; done"],
            "pointer": [
                f"gitdir evil; cp -r {git}/refs {git}/HEAD evil; echo $PWD/evil > {git}/commondir",
                f"echo $PWD/evil/objects > {git}/objects/info/alternates; evil > {git}/config.worktree",
            ],
            "replace": self._replaced(app, target, git),
            "delete": [f'rm -rf "{gone}"'],
        }[axes["act"]]

    def _replaced(self, app: str, target: str, git: str) -> list[str]:
        match self.axes["kind"]:
            case "submodule" | "git_file" as kind:
                at = f"{app}/sub/.git" if kind == "submodule" else f"{app}/.git"
                return [f'gitdir evil; rm -f {at}; echo "gitdir: $PWD/evil" > {at}']
            case "git_symlink":
                return [f"gitdir evil; ln -sfn $PWD/evil {app}/.git"]
            case "no_repository":
                return [f'mv "{target}" {app}/was; echo evil > "{target}"']
            case _:
                return [f"mv {git} {git}-old; gitdir {git}"]

    def _renamed_top(self) -> list[str]:
        if self.axes["rename"] != "top":
            return []
        return ["cd $ROOT; mv top moved"]


if __name__ == "__main__":
    print(compose(int(sys.argv[1]), large=True).script())
