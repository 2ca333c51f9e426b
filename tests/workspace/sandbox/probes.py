"""What a command may try in order to get out. Each prints BROKEN when it worked."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One try."""

    name: str
    command: str
    works_outside: bool = False
    """Without containment it works, and does no harm: the control that the try is a real one."""


def _python(code: str) -> str:
    return f"python3 -c '\nimport ctypes, os, socket, sys\nlibc = ctypes.CDLL(None, use_errno=True)\n{code}'"


def _connect(family: str, kind: str, address: str) -> str:
    return _python(
        f's = socket.socket(socket.{family}, socket.{kind})\ns.settimeout(3)\ns.connect({address})\nprint("BROKEN")'
    )


def _call(number: int, *arguments: str) -> str:
    """Make a system call by its number (x86-64); not to be refused is to be broken."""
    given = ", ".join(arguments)
    return _python(
        f'r = libc.syscall({number}, {given})\nprint("BROKEN" if r >= 0 else os.strerror(ctypes.get_errno()))'
    )


WRITES: Final = (
    Probe(name="write beside", command='echo x > "$OUT/new" && echo BROKEN', works_outside=True),
    Probe(name="change a file", command='echo x >> "$OUT/file" && echo BROKEN', works_outside=True),
    Probe(name="write by dots", command='echo x > ../../outside/dots && echo BROKEN', works_outside=True),
    Probe(
        name="write through a link",
        command='ln -s "$OUT" link && echo x > link/by-link && echo BROKEN; rm -f link',
        works_outside=True,
    ),
    Probe(name="hard link in", command='ln "$OUT/file" hard && echo x >> hard && echo BROKEN', works_outside=True),
    Probe(name="delete", command='rm "$OUT/file" && echo BROKEN', works_outside=True),
    Probe(name="rename", command='mv "$OUT/file" "$OUT/other" && echo BROKEN', works_outside=True),
    Probe(name="chmod", command='chmod 700 "$OUT" && echo BROKEN', works_outside=True),
    Probe(name="times", command='touch -d 2001-01-01 "$OUT/file" && echo BROKEN', works_outside=True),
    Probe(name="attributes", command=_python('os.setxattr(os.environ["OUT"], "user.x", b"1"); print("BROKEN")')),
    Probe(name="home profile", command="echo x >> ~/.bashrc && echo BROKEN", works_outside=True),
    Probe(name="home git", command="git config --global core.pager x && echo BROKEN", works_outside=True),
    Probe(name="replace the home", command='mv "$HOME" "$TOP/h2" && echo BROKEN'),
    Probe(name="workspace away", command='mv "$WS" "$HOME/p2" && echo BROKEN'),
    Probe(name="by cwd", command=_python('os.open("/proc/self/cwd/../../outside/x", os.O_CREAT | os.O_WRONLY); print("BROKEN")')),
    Probe(name="by root", command=_python('os.open("/proc/1/root" + os.environ["OUT"] + "/x", os.O_CREAT | os.O_WRONLY); print("BROKEN")')),
    Probe(name="system", command="echo x > /etc/tiller-probe && echo BROKEN"),
    Probe(name="programs", command="cp /bin/true /usr/local/bin/tiller-probe && echo BROKEN"),
    Probe(name="timers", command="mkdir -p /var/spool/cron && echo x > /var/spool/cron/tiller-probe && echo BROKEN"),
)  # fmt: skip

PROTECTED: Final = (
    Probe(name="git config", command="git config core.fsmonitor x; git config core.fsmonitor && echo BROKEN", works_outside=True),
    Probe(name="git config by hand", command="echo '[x]' >> .git/config && echo BROKEN", works_outside=True),
    Probe(name="a hook", command="mkdir -p .git/hooks; echo x > .git/hooks/pre-commit && echo BROKEN", works_outside=True),
    Probe(name="git attributes", command="echo '* filter=x' > .git/info/attributes && echo BROKEN", works_outside=True),
    Probe(name="mv .git", command="mv .git .g2 && echo BROKEN", works_outside=True),
    Probe(name="rm .git", command="rm -rf .git; test -e .git || echo BROKEN"),
    Probe(name="exchange .git", command=_python('print("BROKEN" if os.mkdir("g2") or libc.renameat2(-100, b".git", -100, b"g2", 2) == 0 else "no")')),
    Probe(name="mv hooks", command="mv .git/hooks .git/h2 && mkdir .git/hooks && echo BROKEN", works_outside=True),
    Probe(name="config by rename", command="cp .git/config c2; echo '[x]' >> c2; mv -f c2 .git/config; grep -q x] .git/config && echo BROKEN", works_outside=True),
    Probe(name="mount over git", command="mount --bind /tmp .git && echo BROKEN"),
    Probe(name="unmount git", command="umount .git/config && echo BROKEN"),
    Probe(name="tasks of the editor", command="echo x > .vscode/tasks.json && echo BROKEN", works_outside=True),
    Probe(name="rename the editor's", command="mv .vscode v2 && mkdir .vscode && echo BROKEN", works_outside=True),
    Probe(name="agents", command="echo x >> AGENTS.md && echo BROKEN", works_outside=True),
    Probe(name="agents by rename", command="echo x > a2; mv -f a2 AGENTS.md && echo BROKEN", works_outside=True),
    Probe(name="servers", command="echo x > .mcp.json && echo BROKEN", works_outside=True),
    Probe(name="workflows", command="echo x > .github/workflows/evil.yml && echo BROKEN", works_outside=True),
    Probe(name="shell of the folder", command="echo x > .envrc && echo BROKEN", works_outside=True),
    Probe(name="deeper tasks", command="echo x > package/.vscode/tasks.json && echo BROKEN", works_outside=True),
)  # fmt: skip

SECRETS: Final = (
    *(
        Probe(name=f"read {place}", command=f"grep -r tell-nobody {place} && echo BROKEN", works_outside=True)
        for place in ("~/.ssh", "~/.aws", "~/.gnupg", "~/.config/gh", "~/.docker", "~/.kube", "~/.netrc", "~/.npmrc",
                      "~/.git-credentials", '"$CONFIG"', '"$DATA"', '"$RUNTIME"')
    ),
    Probe(name="environment", command="env | grep tell-nobody && echo BROKEN", works_outside=True),
    Probe(name="environment of init", command="tr '\\0' '\\n' < /proc/1/environ | grep tell-nobody && echo BROKEN"),
    Probe(name="environment of all", command="cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep tell-nobody && echo BROKEN", works_outside=True),
    Probe(name="loader variables", command="env | grep -E '^(LD_PRELOAD|BASH_ENV|GIT_SSH)' && echo BROKEN", works_outside=True),
    Probe(name="passwords", command="grep -q : /etc/shadow && echo BROKEN"),
    Probe(name="other processes", command='test -d "/proc/$ME" && grep -q python "/proc/$ME/comm" && echo BROKEN'),
    Probe(name="open files", command="ls -l /proc/self/fd | grep -vE 'pipe|null|fd$|total|/proc/|memfd' | grep / && echo BROKEN"),
    Probe(name="kernel log", command="dmesg | grep . && echo BROKEN"),
    Probe(name="keys of the kernel", command=_call(250, "0", "-3", "1")),
    Probe(name="a new key", command=_call(248, 'b"user"', 'b"x"', 'b"y"', "1", "-3")),
)  # fmt: skip

REACHES: Final = (
    Probe(name="daemon", command=f'cd "$RUNTIME" && {_connect("AF_UNIX", "SOCK_STREAM", repr("daemon.sock").replace(chr(39), chr(34)))}', works_outside=True),
    Probe(name="socket by path", command=f'cd ~ && {_connect("AF_UNIX", "SOCK_STREAM", chr(34) + "odd.sock" + chr(34))}', works_outside=True),
    Probe(name="datagrams by path", command=f'cd ~ && {_connect("AF_UNIX", "SOCK_DGRAM", chr(34) + "log.sock" + chr(34))}', works_outside=True),
    Probe(name="abstract socket", command=_connect("AF_UNIX", "SOCK_STREAM", '"\\0" + os.environ["ABSTRACT"]'), works_outside=True),
    Probe(name="tcp here", command=_connect("AF_INET", "SOCK_STREAM", '("127.0.0.1", int(os.environ["TCP"]))'), works_outside=True),
    Probe(name="tcp by bash", command='exec 3<>"/dev/tcp/127.0.0.1/$TCP" && echo BROKEN', works_outside=True),
    Probe(name="udp here", command=_python('s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.sendto(b"x", ("127.0.0.1", int(os.environ["UDP"])))\ntry:\n  s.connect(("10.0.0.1", 9))\n  print("BROKEN")\nexcept OSError as e: print(e)')),
    Probe(name="tcp out", command=_connect("AF_INET", "SOCK_STREAM", '("192.0.2.1", 80)')),
    Probe(name="tcp6 out", command=_connect("AF_INET6", "SOCK_STREAM", '("2001:db8::1", 80)')),
    Probe(name="names", command=_python('socket.getaddrinfo("example.com", 80); print("BROKEN")')),
    Probe(name="raw", command=_python('socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print("BROKEN")')),
    Probe(name="packets", command=_python('socket.socket(17, socket.SOCK_RAW, 768); print("BROKEN")')),
    Probe(name="virtual machine", command=_python('socket.socket(40, socket.SOCK_STREAM); print("BROKEN")'),),
    Probe(name="kernel crypto", command=_python('socket.socket(38, 5); print("BROKEN")')),
    Probe(name="netlink audit", command=_python('socket.socket(16, 3, 9); print("BROKEN")')),
    Probe(name="interfaces", command="ls /sys/class/net/* && echo BROKEN", works_outside=True),
    Probe(name="rings", command=_call(425, "1", "ctypes.create_string_buffer(200)")),
)  # fmt: skip

KERNEL: Final = (
    Probe(name="mount", command="mount -t tmpfs none /mnt && echo BROKEN"),
    Probe(name="remount", command="mount -o remount,rw / && echo BROKEN"),
    Probe(name="new mount calls", command=_call(430, 'b"tmpfs"', "0")),
    Probe(name="open tree", command=_call(428, "-100", 'b"/"', "1")),
    Probe(name="pivot", command=_call(155, 'b"/tmp"', 'b"/tmp"')),
    Probe(name="chroot", command=_call(161, 'b"/tmp"')),
    Probe(name="user namespace", command="unshare -U true && echo BROKEN", works_outside=True),
    Probe(name="user namespace by clone", command=_call(56, "0x10000011", "0", "0", "0", "0")),
    Probe(name="mount namespace", command=_call(272, "0x00020000")),
    Probe(name="enter namespaces", command=_python('f = os.open("/proc/1/ns/user", os.O_RDONLY)\nprint("BROKEN" if libc.setns(f, 0) == 0 else "no")')),
    Probe(name="bubblewrap inside", command="bwrap --ro-bind / / true && echo BROKEN", works_outside=True),
    Probe(name="trace init", command=_call(101, "16", "1", "0", "0")),
    Probe(name="trace a child", command=_call(101, "0", "0", "0", "0")),
    Probe(name="memory of another", command=_call(310, "1", "0", "0", "0", "0", "0")),
    Probe(name="programs in the kernel", command=_call(321, "0", "ctypes.create_string_buffer(128)", "72")),
    Probe(name="page faults", command=_call(323, "1")),
    Probe(name="performance", command=_call(298, "ctypes.create_string_buffer(bytes([1,0,0,0,112,0,0,0]) + bytes(104))", "0", "-1", "-1", "0")),
    Probe(name="handles", command=_call(304, "-100", "0", "0")),
    Probe(name="modules", command=_call(313, "0", 'b""', "0")),
    Probe(name="clock", command=_call(227, "0", "ctypes.create_string_buffer(16)")),
    Probe(name="host name", command="hostname evil && echo BROKEN"),
    Probe(name="kernel settings", command='now=$(cat /proc/sys/kernel/core_pattern); echo "$now" > /proc/sys/kernel/core_pattern && echo BROKEN'),
    Probe(name="system request", command="echo h > /proc/sysrq-trigger && echo BROKEN"),
    Probe(name="devices", command="ls /dev/sd* /dev/nvme* /dev/vd* /dev/mem /dev/kmsg /dev/fuse /dev/kvm 2>/dev/null && echo BROKEN"),
    Probe(name="make a device", command="mknod disk b 8 0 && echo BROKEN"),
    Probe(name="type on the terminal", command=_python('import fcntl\nm, s = os.openpty()\nfcntl.ioctl(s, 0x5412, b"x")\nprint("BROKEN")')),
    Probe(name="a terminal of others", command="echo x > /dev/tty && echo BROKEN"),
    Probe(name="set user id", command='cp "$(command -v id)" own-id; chmod u+s own-id; grep -q "NoNewPrivs:.*0" /proc/self/status && echo BROKEN'),
    Probe(name="capabilities", command="grep -qE 'Cap(Eff|Prm|Bnd|Amb).*[1-9a-f]' /proc/self/status && echo BROKEN"),
    Probe(name="other calls by number", command=_call(0x40000000 + 39)),
    Probe(name="kill outside", command='kill -0 "$ME" && test "$ME" -gt 100 && echo BROKEN', works_outside=True),
    Probe(name="control groups", command="ls /sys/fs/cgroup/* && echo BROKEN"),
    Probe(name="shared memory of others", command='ipcs -m | grep -E "^0x" && echo BROKEN'),
)  # fmt: skip

FILLS: Final = (
    Probe(name="one huge file", command="truncate -s 20G /tmp/huge && echo BROKEN", works_outside=True),
    Probe(name="one huge file here", command="truncate -s 20G huge && echo BROKEN; rm -f huge", works_outside=True),
    Probe(name="a core", command="ulimit -c unlimited; test $(ulimit -c) = unlimited && echo BROKEN"),
    Probe(name="much memory", command=_python('import mmap\nm = mmap.mmap(-1, 1 << 46, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)\nprint("BROKEN")')),
    Probe(name="shared memory", command="head -c 1100M /dev/zero > /dev/shm/x && echo BROKEN"),
    Probe(name="masked folder", command="chmod 755 ~/.ssh; head -c 200K /dev/zero > ~/.ssh/x && echo BROKEN"),
    Probe(name="devices folder", command="echo x > /dev/x && echo BROKEN"),
)  # fmt: skip

ALL: Final = (*WRITES, *PROTECTED, *SECRETS, *REACHES, *KERNEL, *FILLS)
