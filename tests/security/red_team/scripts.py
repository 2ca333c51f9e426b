"""Shell functions of the attacks. `MARK` names the file that every payload writes."""

from typing import Final

EXCHANGE: Final = r"""
exchange() {  # two entries change places at once, as renameat2 with RENAME_EXCHANGE does
    python3 - "$1" "$2" <<'END'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
first, second = (os.fsencode(one) for one in sys.argv[1:])
if libc.renameat2(-100, first, -100, second, 2) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
END
}
exchanging() {  # the same again and again, until the process is ended
    python3 - "$1" "$2" <<'END'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
first, second = (os.fsencode(one) for one in sys.argv[1:])
while os.getppid() != 1:
    libc.renameat2(-100, first, -100, second, 2)
END
}
"""
PAYLOADS: Final = (
    r"""
evil() {  # a configuration that makes `git status` run the payload
    printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = "touch %s; false"\n' "$MARK"
}
hook() { printf '#!/bin/sh\ntouch %s\n' "$MARK"; }
gitdir() {  # a folder of git that runs the payload, by hand
    mkdir -p "$1/objects" "$1/refs/heads"
    echo 'ref: refs/heads/main' > "$1/HEAD"
    evil > "$1/config"
}
tame_files() {  # what makes an existing folder one of git that runs nothing; no process is started
    echo 'ref: refs/heads/main' > "$1/HEAD"
    printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n' > "$1/config"
}
many() {  # so many files; links to one, since new ones take a disk ten times as long
    python3 -c 'import os, sys; open("f0", "x").close(); [os.link("f0", f"f{at}") for at in range(1, int(sys.argv[1]))]' "$1"
}
bare() {  # a repository under any name, with the workspace as its working tree
    gitdir "$1"
    printf '\tworktree = %s\n' "$PWD" >> "$1/config"
}
waiting() {  # until the test has looked
    echo PLANTED
    for _ in $(seq 1000); do [ -e "$ROOT/go" ] && return; sleep 0.02; done
}
"""
    + EXCHANGE
)
