"""Commands that can lose commits, as data: what each does when nothing stands in its way.

The policy may say of a row that it is asked about or refused; then nothing else has to hold. Add rows at will.
"""

from dataclasses import dataclass
from typing import Final, Literal

Loses = Literal["nothing", "commits", "data"]
"""When it runs without containment.

nothing: All commits stay reachable by a ref, a reflog or the stash, and the folder of git keeps its files.
commits: Some commits are reachable no more.
data: Files of the folder of git are gone or changed without git.
"""
HISTORY: Final = r"""
git config gc.auto 0
for name in one two three; do echo $name > $name.txt; git add $name.txt; git commit -q -m $name; done
git branch topic "$(git commit-tree -p HEAD~1 -m topic 'HEAD^{tree}')"
git tag light "$(git commit-tree -p HEAD~2 -m light 'HEAD^{tree}')"
git tag -a -m full full "$(git commit-tree -p HEAD~2 -m full 'HEAD^{tree}')"
git update-ref refs/notes/review "$(git commit-tree -m note 'HEAD^{tree}')"
echo stashed >> one.txt; git stash -q
git init -q --bare --template= $SECOND/remote.git
git remote add origin $SECOND/remote.git
git push -q origin main
git push -q origin "$(git commit-tree -p HEAD -m theirs 'HEAD^{tree}'):refs/heads/main"
git push -q origin "$(git commit-tree -p HEAD -m other 'HEAD^{tree}'):refs/heads/other"
git update-ref refs/remotes/origin/old "$(git commit-tree -m old 'HEAD^{tree}')"
echo dirty >> two.txt
mkdir -p worktrees; git worktree add -q --detach worktrees/side main~1
"""
"""What the user has: branches, tags, notes, a stash and a remote, each with a commit that nothing else reaches."""


@dataclass(frozen=True, slots=True)
class Row:
    """One command."""

    command: str
    loses: Loses = "nothing"
    verdict: Literal["ask", "refuse"] | None = None
    """What the policy has to say of it in full containment; None: nothing is asked of it."""


ROWS: Final = (
    # Files
    Row("rm -rf .git", "data"),
    Row("rm -r .git", "data"),
    Row("rm -rf -- ./.git/", "data"),
    Row("rm -rf .g*", "data"),
    Row("rm -rf .git/objects", "data"),
    Row("rm -rf .git/refs .git/packed-refs", "data"),
    Row("rm -rf .git/logs", "data"),
    Row("rm .git/index", "data"),
    Row("rm .git/HEAD", "data"),
    Row("rm -f .git/refs/heads/topic", "data"),
    Row("find . -delete", "data"),
    Row("find .git -type f -delete", "data"),
    Row("find . -type f -exec rm -f {} +", "data"),
    Row("find . -mindepth 1 -maxdepth 1 -exec rm -rf {} +", "data"),
    Row("mv .git .git-old", "data"),
    Row("mv .git/objects $SECOND/objects", "data"),
    Row("mv .git $SECOND/git", "data"),
    Row("echo broken > .git/HEAD", "data"),
    Row("truncate -s 0 .git/refs/heads/main", "data"),
    Row(": > .git/logs/HEAD", "data"),
    Row("chmod -R u-w,a-r .git", "data"),
    Row("sed -i s/main/topic/ .git/HEAD", "data"),
    Row("cp /dev/null .git/index", "data"),
    Row("tar cf $SECOND/all.tar . && rm -rf .git", "data"),
    Row("python3 -c \"import shutil; shutil.rmtree('.git')\"", "data"),
    Row("perl -e 'unlink glob q(.git/refs/heads/*)'", "data"),
    Row("rsync -a --delete docs/ .git/ || rm -rf .git", "data"),
    Row("rm -rf $SECOND/remote.git", "data"),
    Row("rm -rf worktrees/side .git/worktrees", "data"),
    Row("git --version && rm -rf .git", "data"),
    Row("git -c alias.x='!rm -rf .git' x", "data"),
    Row("GIT_EDITOR='rm -rf .git #' git commit --allow-empty", "data"),
    Row("git rebase -q --exec 'rm -rf .git/logs' HEAD~1 || git rebase --abort; rm -rf .git/logs", "data"),
    # git, with commits that nothing reaches afterwards
    Row("git branch -D topic", "commits"),
    Row("git branch -q -d --force topic", "commits"),
    Row("git update-ref -d refs/heads/topic", "commits"),
    Row("git update-ref -d refs/notes/review", "commits"),
    Row("git tag -d light", "commits"),
    Row("git tag -d full", "commits"),
    Row("git tag -f light HEAD", "commits"),
    Row("git stash drop", "commits"),
    Row("git stash clear", "commits"),
    Row("git notes --ref=review prune; git update-ref -d refs/notes/review", "commits"),
    Row("git reset -q --hard HEAD~1 && git reflog expire --expire=now --all", "commits"),
    Row("git reflog expire --expire=now --expire-unreachable=now --all", "commits"),
    Row("git reset -q --hard HEAD~1 && git reflog expire --expire=now --all && git gc -q --prune=now", "commits"),
    Row("git for-each-ref --format='delete %(refname)' refs/tags | git update-ref --stdin", "commits"),
    Row("git push -q --force origin main", "commits"),
    Row("git push -q origin +main", "commits"),
    Row("git push -q origin --delete other", "commits"),
    Row("git -C $SECOND/remote.git update-ref -d refs/heads/main", "commits"),
    Row("git checkout -q -f; FILTER_BRANCH_SQUELCH_WARNING=1 git filter-branch -f --msg-filter 'echo x' HEAD && git update-ref -d refs/original/refs/heads/main && git reflog expire --expire=now --all", "commits"),
    # git, with nothing lost that cannot be found again
    Row("git branch -q -f topic HEAD~1"),
    Row("git checkout -q -B topic main"),
    Row("git switch -q -C topic main"),
    Row("git reset -q --hard HEAD~1"),
    Row("git reset -q --hard"),
    Row("git checkout -q -f"),
    Row("git checkout -q -- ."),
    Row("git restore ."),
    Row("git clean -q -fdx -e worktrees"),
    Row("git gc -q --prune=now"),
    Row("git prune"),
    Row("git repack -q -a -d"),
    Row("git pack-refs --all"),
    Row("git commit -q --amend -a -m other"),
    Row("git rebase -q --autostash --onto HEAD~2 HEAD~1"),
    Row("git checkout -q --orphan fresh"),
    Row("git branch -m main trunk"),
    Row("git worktree remove --force worktrees/side"),
    Row("git worktree prune"),
    Row("git update-index --force-remove one.txt"),
    Row("git symbolic-ref HEAD refs/heads/topic"),
    Row("git rm -q -r --cached ."),
    Row("git read-tree --empty"),
)  # fmt: skip

FILES: Final = (
    "rm -rf build",
    "rm -rf build/*",
    "rm notes.local",
    "rm -rf -- *",
    "rm one.txt two.txt && echo other > new.txt",
    "find . -name '*.txt' -not -path './.git/*' -delete",
    ": > two.txt",
    "sed -i d two.txt",
    "dd if=/dev/zero of=two.txt bs=8 count=1",
    "mv build kept",
    "mv notes.local notes.txt",
    "cat notes.local > notes.txt; rm notes.local",
    "tar cf build.tar build && rm -rf build",
    "mv two.txt build/",
    "rm -rf node_modules",
    "rm -rf $SECOND/lib",
    "git clean -q -fdX",
    "git stash -q -a",
    "git rm -q -r -f docs src",
    "git checkout -q main~1 -- . ; git reset -q",
)
"""Commands that destroy files of the workspace, those that git ignores included."""
IGNORED: Final = r"""
printf 'build/\n*.local\n' >> .git/info/exclude
mkdir -p build/deep; echo bin > build/out.bin; echo deep > build/deep/out.bin; echo mine > notes.local
"""
"""Files that git ignores, which a yes to a command may cost."""
