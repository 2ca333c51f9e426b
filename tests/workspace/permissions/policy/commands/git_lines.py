"""Lines with commands of git, and what each may do to the data of repositories."""

READS = """
git status
git status --short 2>&1
git log --oneline -5
git log --oneline | head -3
git --no-pager log
git -P diff HEAD~1
git -C sub status
git diff --stat -- a.py
git diff > /dev/null
git diff 2>/dev/null
git show HEAD:a.py
git show HEAD --format=%H
git blame -L 1,5 a.py
git cat-file -p HEAD
git rev-parse --show-toplevel
git ls-files | wc -l
git for-each-ref --format=x
git reflog
git reflog show main
git clean -n
git clean -ndx
git clean --dry-run -d
git merge-base main topic
git status; git diff && pwd
cd sub && git status
git --literal-pathspecs ls-files
git status # .git/config
git check-ignore a
git describe --tags
git log --output-indicator-new=x
"""
ADDS = """
git add -A
git add .
git add -- a.py
git add -p
git commit -m 'a; rm -rf .'
git commit -m "fix: x > y"
git commit -am x
git commit --amend --no-edit
git commit -m x -- a.py
git commit -m 'see docs/git'
git commit -s -m x
git add -A && git commit -qm x 2>&1
git commit -m x &>/dev/null
git status && git add a
cd sub && git add a
git -C sub commit -m x
! git commit -m x
(git add a)
git stash
git stash push -m x
git stash pop -q
git stash list
git branch
git branch topic
git branch -d topic
git branch -m a b
git branch -r
git checkout -b topic
git checkout main
git checkout -- a.py
git checkout -q HEAD~2
git switch -c topic
git switch main
git restore --staged a.py
git tag v1
git tag -a v1 -m x
git merge topic
git merge --no-ff -m x topic
git merge -X ours topic
git rebase main
git rebase --onto a b c
git rebase --abort
git cherry-pick -x abc
git revert --no-edit HEAD
git reset
git reset --hard
git reset --hard HEAD
git reset -q HEAD a.py
git rm -q --cached a.py
git mv a b
git fetch
git fetch origin main
git pull --rebase
git pull origin main
git clone https://host/x.git
git clone -b cool ./other new
git init
git init -q -b main sub
git gc
git gc --auto
git am x.patch
git apply x.patch
git apply --index --directory=a x.patch
git clean -f
git clean -fd
"""
LOSES = """
git branch -D topic
git branch -d -f topic
git branch --delete --force topic
git branch --delete --fo topic
git branch -qD topic
git branch -M a b
git branch -C a b
git branch -f topic HEAD~9
git branch -dr origin/topic
git branch -r -d origin/topic
git branch --remotes --delete origin/topic
git branch --rem --del origin/topic
git checkout -B main HEAD~9
git checkout -qB main HEAD~9
git checkout -f
git checkout --forc main
git switch -C main HEAD~9
git switch --force-create main HEAD~9
git switch --discard main
git reset --hard HEAD~3
git reset --hard '@~3'
git reset --hard -- HEAD~3
git reset --hard --end-of-options HEAD~3
git reset HEAD^
git stash drop
git stash clear
git stash drop stash@{2}
git clean -fdx
git clean -fX
git clean -ffd
git clean -f -f -d
git clean --force --force
git clean -f --fo
git clean -fdx -e -n
git clean -fdxen
git clean -n --no-dry-run -fdx
git clean -fdx --exclude --dry-run
git tag -d v1
git tag -f v1
git tag --del v1
git fetch --prune
git fetch -qp
git fetch origin +a:b
git fetch origin a:b
git fetch . main:topic
git fetch -f origin
git fetch -P origin
git fetch --depth=1
git fetch --dep 1 origin
git fetch --shallow-since=now
git fetch --shallow-exclude=main
git fetch --update-shallow origin
git fetch --stdin .
echo a:b | git fetch --stdin .
git fetch --refmap= origin
git pull --force
git pull origin +a:b
git pull --depth 1
git push
git push origin main
git push /tmp/evil.git main
git push -f
git push --mirror
git push origin :main
git gc --prune=now
git gc --pru=now
git prune
git reflog expire --all
git reflog delete HEAD@{1}
git update-ref -d refs/heads/main
git symbolic-ref HEAD refs/heads/x
git replace a b
git add a && git branch -D topic
git status; git stash drop
"""
NONE = """
ls
echo x
./git commit
/tmp/git commit
/usr/bin/git commit -m x
env git commit -m x
command git commit -m x
sudo git commit -m x
sh -c 'git commit'
hash -p /tmp/evil git; git commit -m x
alias git=evil; git commit -m x
git() { evil; }; git commit -m x
enable -f ./x git; git commit
exec git commit
eval git commit
git
git nonsense
git config core.pager x
git config --global alias.x '!evil'
git -c core.pager=evil log
git -c alias.add='!evil' add
git -ccore.fsmonitor=evil status
git --config-env=core.pager=X log
git --exec-path=/tmp/evil commit
git --git-dir=/tmp/x commit
git --git-dir /tmp/x commit
git --work-tree=/ add .
git -p log
git -Csub add .
git -C
git rebase -i main
git rebase --interactive main
git rebase --inter main
git rebase -x evil main
git rebase --exec evil main
git rebase --exec=evil main
git rebase --ex evil main
git rebase --e evil main
git rebase -qx evil main
git rebase -qxevil main
git rebase -X -- --exec evil main
git rebase -X -- -x evil main
git rebase -s evil main
git rebase --strategy=evil main
git commit -m -- --interactive
git merge -s evil topic
git merge --strategy evil topic
git merge --strat evil topic
git merge -qs evil topic
git merge -m -- -s evil topic
git pull -s evil
git pull --strateg=evil
git cherry-pick --strategy=evil abc
git revert --strategy evil abc
git fetch --upload-pack=evil .
git fetch --upload evil .
git pull --upload-pack evil .
git push --receive-pack=evil .
git push --exec=evil .
git clone -u evil . x
git clone --upload-pack evil . x
git clone -qu evil . x
git clone -c core.fsmonitor=evil . x
git clone -qc core.fsmonitor=evil . x
git clone --config=core.fsmonitor=evil . x
git clone --conf core.fsmonitor=evil . x
git clone --template=/tmp/evil . x
git clone --recurse-submodules . x
git clone --recursive . x
git clone --separate-git-dir=g . x
git clone ext::evil x
git clone 'ext::sh -c evil' x
git clone evil://host x
git fetch evil::x
git fetch 'ext::sh -c evil'
git pull ext::evil main
git init --template=/tmp/evil
git init --templ /tmp/evil sub
git init --separate-git-dir g
git checkout --recurse-submodules main
git log --ext-diff -p
git log --ext -p
git show --textconv
git cat-file --textconv HEAD:a
git cat-file --filters HEAD:a
git diff --output=a
git diff --outp=a
git log -p --output a
git status; git diff --output=refs
git apply --unsafe-paths x.patch
git apply --unsafe x.patch
git apply --build-fake-ancestor=a x.patch
git apply --build-f a x.patch
git grep -O x
git grep --open-files-in-pager=evil x
git bisect run evil
git submodule foreach evil
git filter-branch --tree-filter evil
git difftool -x evil
git mergetool
git worktree add x
git remote add x y
git notes add
git repack -ad
git maintenance run
git update-index --add a
git read-tree HEAD
git checkout-index -a
git hash-object -w a
git fast-import
git bundle create x HEAD
git archive -o x HEAD
git format-patch -o x HEAD~1
git daemon
git upload-pack .
git send-email x
git credential fill
git help add
git log > log
git log >> log
git diff 2> err
git log >/dev/null2
git diff >/dev/null/../x
git commit -F - < msg
git commit -m "$(evil)"
git commit -m `evil`
git commit -m "$X"
GIT_SSH_COMMAND=evil git fetch
PATH=. git commit -m x
export GIT_EXEC_PATH=. && git commit -m x
git commit -m x | evil
git commit -m x | sh
git log | tee a
git log | xargs rm
git commit -m x && make
git commit -m x & evil
git commit -m x; ./evil
git commit -m x || evil
git add *
git add ~/x
git add .git/config
git -C .git status
git -C ./.GIT status
git -C sub/.git/hooks status
cd .git && git status
cd sub/.git; git add x
cd ".g"it && git add x
cd .git. && git add x
cat .git/HEAD; git add x
git clone . .git/refs/x
git init .git/hooks
git diff --no-index a:.git/config b
git apply --directory=.git x.patch
if true; then git add .; fi
while true; do git add .; done
git add <(evil)
git commit -F - <<EOF
cd sub && evil; git add a
"""


def rows(text: str) -> list[str]:
    return text.strip().splitlines()


TABLE = {
    **dict.fromkeys(rows(READS), "reads"),
    **dict.fromkeys(rows(ADDS), "adds"),
    **dict.fromkeys(rows(LOSES), "loses"),
    **dict.fromkeys(rows(NONE), "none"),
}
