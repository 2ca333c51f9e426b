"""More of what a command may try in order to get out: calls by number, other names for the same place, doors left open."""

from typing import Final

from tests.workspace.sandbox.probes import Probe


def _python(code: str) -> str:
    return f"python3 -c '\nimport ctypes, os, resource, socket\nlibc = ctypes.CDLL(None, use_errno=True)\n{code}'"


def _refused(name: str, number: int, *arguments: str) -> Probe:
    """Make a system call (x86-64) that could do no harm even if it were let through; any answer but a refusal is to be broken."""
    given = "".join(f", {one}" for one in arguments)
    code = (
        f"r = libc.syscall({number}{given})\ne = ctypes.get_errno()\n"
        'print("BROKEN" if r >= 0 or e not in (1, 13, 38) else os.strerror(e))'
    )
    return Probe(name=name, command=_python(code))


# Names that nobody has, descriptors and addresses that lead nowhere: nothing would change.
CALLS: Final = (
    _refused("swap on", 167, 'b"/nonexistent"', "0"),
    _refused("swap off", 168, 'b"/nonexistent"'),
    _refused("another kernel", 246, "0", "99", "0", "0"),
    _refused("another kernel from a file", 320, "-1", "-1", "0", "0", "0"),
    _refused("a module from memory", 175, "0", "0", 'b""'),
    _refused("a module away", 176, 'b"no-such-module"', "0"),
    _refused("accounting", 163, 'b"/nonexistent"'),
    _refused("restart", 169, "0", "0", "0", "0"),
    _refused("ports of the processor", 173, "0", "0", "0"),
    _refused("level of ports", 172, "9"),
    _refused("quotas", 179, "0", "0", "0", "0"),
    _refused("quotas by descriptor", 443, "-1", "0", "0", "0"),
    _refused("drift of the clock", 159, "0"),
    _refused("drift of a clock", 305, "0", "0"),
    _refused("write memory of another", 311, "1", "0", "0", "0", "0", "0"),
    _refused("compare with another", 312, "1", "1", "0", "0", "0"),
    _refused("a descriptor of another", 438, "-1", "0", "0"),
    _refused("request a key", 249, 'b"user"', 'b"no-such-key"', "0", "0"),
    _refused("unmount", 166, 'b"/nonexistent"', "0"),
    _refused("move a mount", 429, "-1", 'b""', "-1", 'b""', "0"),
    _refused("change a mount", 442, "-1", 'b""', "0", "0", "0"),
    _refused("pick a mount", 433, "-1", 'b"/nonexistent"', "0"),
    _refused("configure a mount", 431, "-1", "0", "0", "0", "0"),
    _refused("set up a ring", 426, "-1", "0", "0", "0", "0", "0"),
    _refused("register a ring", 427, "-1", "0", "0", "0"),
    _refused("new children in new spaces", 435, "0", "0"),
    _refused("domain name", 171, 'b"x"', "-1"),
    _refused("old trace of the keeper", 101, "16", "os.getppid()", "0", "0"),
    _refused("seize the keeper", 101, "0x4206", "os.getppid()", "0", "0"),
    _refused("type as the console", 16, "0", "0x541C", "0"),
    _refused("change the line's rules", 16, "0", "0x5423", "0"),
    _refused("type with high bits", 16, "0", "0x100005412", "0"),
)

NAMES: Final = (
    Probe(name="a secret from the root of the process", command="grep tell-nobody /proc/self/root$HOME/.netrc && echo BROKEN", works_outside=True),
    Probe(name="a secret from the root of init", command="grep tell-nobody /proc/1/root$HOME/.netrc && echo BROKEN"),
    Probe(name="a secret from an open folder", command="exec 3<~; grep tell-nobody /proc/self/fd/3/.netrc && echo BROKEN", works_outside=True),
    Probe(name="a secret by dots", command="grep tell-nobody ../.netrc && echo BROKEN", works_outside=True),
    Probe(name="a secret through a link", command='ln -s "$CONFIG/auth.json" link; grep tell-nobody link && echo BROKEN', works_outside=True),
    Probe(name="a secret by hard link", command="ln ~/.netrc stolen; grep tell-nobody stolen && echo BROKEN", works_outside=True),
    Probe(name="a key by hard link", command="ln ~/.ssh/id_ed25519 stolen; grep tell-nobody stolen && echo BROKEN", works_outside=True),
    Probe(name="a secret moved here", command="mv ~/.netrc stolen; grep tell-nobody stolen && echo BROKEN", works_outside=True),
    Probe(name="the mask away", command="rm -f ~/.netrc; mv ~/.ssh ~/.s2; rmdir ~/.ssh; grep -rs tell-nobody ~/.s2 ~/.netrc && echo BROKEN", works_outside=True),
    Probe(name="from a folder that is gone", command="mkdir d && cd d && rmdir ../d; grep tell-nobody /proc/self/cwd/../../.netrc ../../.netrc ~/.netrc && echo BROKEN", works_outside=True),
    Probe(name="what was typed", command="grep tell-nobody ~/.bash_history && echo BROKEN", works_outside=True),
    Probe(name="what git remembers", command="grep tell-nobody ~/.config/git/credentials && echo BROKEN", works_outside=True),
    Probe(name="git's configuration by hard link", command="ln .git/config c3; echo '[x]' >> c3; grep -q x] .git/config && echo BROKEN", works_outside=True),
    Probe(name="instructions by hard link", command="ln AGENTS.md a3; echo evil >> a3; grep -q evil AGENTS.md && echo BROKEN", works_outside=True),
    Probe(name="instructions by descriptor", command="exec 3<AGENTS.md; echo evil > /proc/self/fd/3 && echo BROKEN", works_outside=True),
    Probe(name="instructions cut", command="truncate -s 0 AGENTS.md && echo BROKEN", works_outside=True),
    Probe(name="instructions unlinked", command="rm -f AGENTS.md; test -e AGENTS.md || echo BROKEN", works_outside=True),
    Probe(name="instructions through a link", command="ln -s AGENTS.md a4; echo evil > a4 && echo BROKEN", works_outside=True),
    Probe(name="rights of the configuration", command="chmod 777 .git/config && echo BROKEN", works_outside=True),
    Probe(name="exchange the workspace", command=_python('print("BROKEN" if libc.renameat2(-100, os.environ["WS"].encode(), -100, os.environ["OUT"].encode(), 2) == 0 else "no")'), works_outside=True),
)  # fmt: skip

DOORS: Final = (
    Probe(name="variables that lead to programs", command="env | grep -E '^(SSH_AUTH_SOCK|SSH_AGENT|DBUS_|DISPLAY|WAYLAND|XDG_RUNTIME|DOCKER_HOST|GPG_AGENT)' && echo BROKEN", works_outside=True),
    Probe(name="sockets of the system", command="find /run /var/run/ -mindepth 1 2>/dev/null | grep . && echo BROKEN", works_outside=True),
    Probe(name="the display", command="find /tmp/.X11-unix /tmp/.ICE-unix /tmp/tmux-* /tmp/ssh-* 2>/dev/null | grep . && echo BROKEN"),
    Probe(name="sockets of every other kind", command=_python('made = []\nfor f in range(46):\n  for k in (1, 2, 3, 5):\n    if f not in (2, 10, 16):\n      try: socket.socket(f, k); made.append(f)\n      except OSError: pass\nprint("BROKEN" if made else "none")'), works_outside=True),
    Probe(name="tunnels", command="test -e /dev/net/tun && echo BROKEN"),
    Probe(name="the console and clocks", command="ls /dev/console /dev/rtc* /dev/hpet /dev/uinput /dev/input /dev/snd /dev/dri /dev/loop* 2>/dev/null && echo BROKEN"),
    Probe(name="terminals of others", command="ls /dev/pts/[0-9]* 2>/dev/null && echo BROKEN"),
    Probe(name="the kernel's own files", command="test -e /sys/kernel && echo BROKEN", works_outside=True),
    Probe(name="the kernel's memory", command="head -c 4096 /proc/kcore 2>/dev/null | grep -q . && echo BROKEN"),
    Probe(name="settings of the network", command='f=/proc/sys/net/ipv4/ip_forward; now=$(cat $f); echo "$now" > $f && echo BROKEN'),
    Probe(name="settings of names", command='f=/proc/sys/kernel/hostname; now=$(cat $f); echo "$now" > $f && echo BROKEN'),
    Probe(name="who maps whom", command='echo "0 0 1" > /proc/self/uid_map && echo BROKEN'),
    Probe(name="never the one to be killed", command="echo -1000 > /proc/self/oom_score_adj && echo BROKEN"),
    Probe(name="another user", command=_python('os.setgroups([])\nos.setgid(1)\nos.setuid(1)\nprint("BROKEN")')),
    Probe(name="programs with other rights", command="su -s /bin/sh daemon -c 'echo BROKEN' </dev/null"),
    Probe(name="a limit lifted", command=_python('n = resource.RLIM_INFINITY\nresource.setrlimit(resource.RLIMIT_FSIZE, (n, n))\nprint("BROKEN")'), works_outside=True),
    Probe(name="rights by a file", command='cp "$(command -v true)" t && setcap cap_sys_admin+ep t && echo BROKEN'),
    Probe(name="what the user starts later", command="for f in .config/autostart/x .local/bin/x .config/systemd/user/x .local/share/applications/x .cache/x .pam_environment; do mkdir -p ~/$(dirname $f); echo x > ~/$f && echo BROKEN; done", works_outside=True),
    Probe(name="a repository around", command='git init -q "$HOME" && echo BROKEN', works_outside=True),
    Probe(name="git works elsewhere", command='git --git-dir="$OUT" --work-tree=. init -q && echo BROKEN', works_outside=True),
    Probe(name="a git file that points out", command='mkdir w; echo "gitdir: $OUT" > w/.git; git init -q --bare "$OUT"; git -C w config core.pager x && echo BROKEN', works_outside=True),
    Probe(name="a worktree outside", command='git worktree add -q "$OUT/w" -b w && echo BROKEN', works_outside=True),
)  # fmt: skip

DEEPER: Final = (*CALLS, *NAMES, *DOORS)
