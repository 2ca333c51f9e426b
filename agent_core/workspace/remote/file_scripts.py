"""Shell scripts for the files of a remote workspace: POSIX sh, with programs that BusyBox and coreutils both have.

Each script writes a status line first: `ok`, with figures, or `error` with a code. A script that ends without it was cut off. A
script enters the folder of a file and checks that the folder is where its path says; then it uses names in that folder only,
so that no link can lead out between check and use.
"""

from typing import Final

COMMON: Final = r"""
set -f
LC_ALL=C; export LC_ALL
fail() {
  printf 'error %s\n' "$*"
  # Engines report an error when nobody reads the input.
  cat >/dev/null 2>&1
  exit 0
}
why() {
  p=$1
  while [ -n "$p" ] && [ "$p" != / ]; do
    [ -L "$p" ] && fail ELOOP
    if [ -d "$p" ]; then [ -x "$p" ] && fail "${2:-ENOENT}"; fail EACCES; fi
    [ -e "$p" ] && fail ENOTDIR
    p=${p%/*}
  done
  fail "${2:-ENOENT}"
}
enter() {
  cd -P -- "$1" 2>/dev/null || why "$1"
  here=$(pwd -P; printf x)
  [ "$here" = "$1
x" ] || fail ELOOP
}
facts() { stat -c '%s %Y %h %u %g %a' -- "$1" 2>/dev/null || stat -f '%z %m %l %u %g %Lp' -- "$1" 2>/dev/null; }
digest() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum < "$1"
  elif command -v shasum >/dev/null 2>&1; then shasum -a 256 < "$1"
  else openssl dgst -sha256 -r < "$1"; fi 2>/dev/null | cut -c1-64
}
regular() {
  [ -L "$1" ] && fail ELOOP
  [ -d "$1" ] && fail EISDIR
  [ -e "$1" ] || fail ENOENT
  [ -f "$1" ] || fail ESPECIAL
}
changeable() {
  [ -w "$1" ] || fail EPROTECTED
  user=$(id -u)
  set -- $(facts "$1") $(facts .)
  [ "$4" = "$user" ] || [ "$4" = "${10}" ] || fail "EOWNER $4"
  [ ! -k . ] || fail ESHARED
}
make() {
  if [ ! -d "$1" ] || [ -L "$1" ]; then
    a=$1
    while [ ! -e "$a" ] && [ ! -L "$a" ]; do a=${a%/*}; a=${a:-/}; done
    enter "$a"
    mkdir -p -- "$1" 2>/dev/null || why "$1" EACCES
  fi
  enter "$1"
}
receive() {
  trap 'rm -f -- "$t"' EXIT
  trap 'exit 1' HUP INT TERM PIPE
  ( set -C; : > "$t" ) 2>/dev/null || { [ -w . ] && fail EROFS; fail EACCES; }
  cat > "$t" 2>/dev/null || fail ENOSPC
  [ "$(digest "$t")" = "$1" ] || fail ECUT
  sync "$t" >/dev/null 2>&1
}
"""

PROBE: Final = r"""
case $1 in
  '') ;;
  '~') cd ;;
  '~/'*) cd && cd -- "${1#??}" ;;
  *) cd -- "$1" ;;
esac 2>/dev/null || fail ENOENT
printf 'ok\n'
pwd -P
printf '\0%s\0' "$HOME"
env -0 2>/dev/null || env | while IFS= read -r line; do printf '%s\0' "$line"; done
"""
"""Argument: a folder, empty for the one in which commands start. Writes it, the home and the environment."""

RESOLVE: Final = r"""
real() {
  r=; rest=$1; n=0
  while [ -n "$rest" ]; do
    case $rest in
      */*) c=${rest%%/*}; rest=${rest#*/} ;;
      *) c=$rest; rest= ;;
    esac
    case $c in
      ''|.) ;;
      ..) r=${r%/*} ;;
      *)
        if [ -L "$r/$c" ] && [ "$n" -lt 40 ]; then
          n=$((n + 1))
          l=$(readlink -- "$r/$c"; printf x); l=${l%?x}
          case $l in /*) r= ;; esac
          rest=$l${rest:+/$rest}
        else r=$r/$c; fi ;;
    esac
  done
  r=${r:-/}
}
printf 'ok\n'
for p; do
  real "$p"
  f=
  [ -L "$r" ] && f=L
  { [ -e "$r" ] || [ -L "$r" ]; } && f=${f}E
  [ -d "$r" ] && f=${f}D
  [ -d "${r%/*}/" ] && f=${f}P
  q=$p
  while [ -n "$q" ]; do
    if [ -e "$q" ]; then [ -d "$q" ] || [ "$q" = "$p" ] || f=${f}N; break; fi
    q=${q%/*}
  done
  there=$r
  while there=${there%/*}; [ -n "$there" ] && [ ! -d "$there" ]; do :; done
  above=$p
  while above=${above%/*}; [ -n "$above" ] && [ ! -e "$above" ] && [ ! -L "$above" ]; do :; done
  printf '%s\0%s\0%s\0%s\0' "$r" "$f" "${there:-/}" "${above:-/}"
done
"""
"""Arguments: absolute paths. Writes for each the real path, flags, the nearest folder above the real path, and what is there
above the path as it was written. Flags: L a link, E exists, D a folder, P its parent is a folder, N it goes through a file."""

STAT: Final = r"""
enter "$1"
f=./$2
[ -L "$f" ] || [ -e "$f" ] || why "$1/$2"
if [ -L "$f" ]; then k=other
elif [ -d "$f" ]; then k=folder
elif [ -f "$f" ]; then k=file
else k=other; fi
set -- $(facts "$f")
printf 'ok %s %s %s\n' "$k" "${1:-0}" "${2:-0}"
"""
"""Arguments: the folder, the name (`.`: the folder itself)."""

LIST: Final = r"""
enter "$1"
ls . >/dev/null 2>&1 || fail EACCES
printf 'ok\n'
if stat --printf '' / 2>/dev/null; then
  find . ! -name . -prune -exec stat --printf '%f %s %n\0' -- {} + 2>/dev/null
  printf '\0'
  find . ! -name . -prune -type l -exec stat -L --printf '%f %s %n\0' -- {} + 2>/dev/null
  exit 0
fi
each() {
  set +f
  for f in ./* ./.[!.]* ./..?*; do
    [ -e "$f" ] || [ -L "$f" ] || continue
    if [ "$1" = real ]; then [ -L "$f" ] && [ -e "$f" ] || continue
    elif [ -L "$f" ]; then printf 'a1ff 0 %s\0' "$f"; continue; fi
    if [ -d "$f" ]; then printf '41ed 0 %s\0' "$f"
    elif [ -f "$f" ]; then
      s=$(stat -L -c %s -- "$f" 2>/dev/null || stat -L -f %z -- "$f" 2>/dev/null)
      printf '81a4 %s %s\0' "${s:-0}" "$f"
    else printf '21b6 0 %s\0' "$f"; fi
  done
}
each all
printf '\0'
each real
exit 0
"""
"""Argument: the folder. Writes mode in hex, size and name of each entry, an empty entry, and the same for what links lead to."""

READ: Final = r"""
enter "$1"
f=./$2
regular "$f"
[ -r "$f" ] || fail EACCES
exec < "$f" || fail EACCES
set -- "$3" $(facts "$f")
[ "$1" = - ] || [ "$2" -le "$1" ] || fail "EFBIG $2"
printf 'ok %s\n' "$2"
cat || exit 9
"""
"""Arguments: the folder, the name, the most bytes or `-`. Writes the size, then the content."""

REPLACE: Final = r"""
enter "$1"
dir=$1; f=./$2; t=./$3
regular "$f"
changeable "$f"
set -- "$4" "$5" $(facts "$f")
umask 077
receive "$2"
[ "$6" = "$(id -u)" ] && [ "$7" = "$(id -g)" ] || chown "$6:$7" -- "$t" 2>/dev/null
m=000$8; m=${m#"${m%???}"}
chmod "$m" -- "$t" || fail EACCES
[ -L "$f" ] && fail ELOOP
[ -e "$f" ] || fail ENOENT
[ "$(digest "$f")" = "$1" ] || fail ESTALE
[ . -ef "$dir" ] || fail EMOVED
mv -f -- "$t" "$f" 2>/dev/null || fail EACCES
printf 'ok %s\n' "$5"
"""
"""Arguments: the folder, the name, a name for the temporary file, the digest before, the digest of the input. Writes the
number of hard links that there were."""

CREATE: Final = r"""
make "$1"
dir=$1; f=./$2; t=./$3
[ -d "$f" ] && fail EISDIR
[ ! -k . ] || fail ESHARED
[ -e "$f" ] || [ -L "$f" ] && fail EEXIST
receive "$4"
[ . -ef "$dir" ] || fail EMOVED
if ! ln -- "$t" "$f" 2>/dev/null; then
  ( set -C; : > "$f" ) 2>/dev/null || fail EEXIST
  mv -f -- "$t" "$f" 2>/dev/null || fail EACCES
fi
printf 'ok\n'
"""
"""Arguments: the folder, the name, a name for the temporary file, the digest of the input."""

DELETE: Final = r"""
enter "$1"
f=./$2; t=./$3
regular "$f"
changeable "$f"
[ "$(digest "$f")" = "$4" ] || fail ESTALE
[ . -ef "$1" ] || fail EMOVED
mv -- "$f" "$t" 2>/dev/null || fail EACCES
if [ "$(digest "$t")" != "$4" ]; then ln -- "$t" "$f" 2>/dev/null && rm -f -- "$t"; fail ESTALE; fi
rm -f -- "$t"
printf 'ok\n'
"""
"""Arguments: the folder, the name, a name to put it aside, its digest."""

MOVE: Final = r"""
enter "$1"
regular "./$2"
[ ! -k . ] || fail ESHARED
fail() { printf 'error %s target\n' "$*"; exit 0; }
make "$3"
to=$3/$4
[ ! -k . ] || fail ESHARED
[ -e "./$4" ] || [ -L "./$4" ] && fail EEXIST
[ . -ef "$3" ] || fail EMOVED
from=$(cd -P -- "$1" 2>/dev/null && pwd -P; printf x)
[ "$from" = "$1
x" ] || fail EMOVED
if ! ln -- "$1/$2" "./$4" 2>/dev/null; then
  [ -e "./$4" ] || [ -L "./$4" ] && fail EEXIST
  [ -w . ] || fail EACCES
  fail EXDEV
fi
rm -f -- "$1/$2" || { rm -f -- "./$4"; fail EACCES; }
printf 'ok\n'
"""
"""Arguments: folder and name of the source, folder and name of the target."""

WATCH: Final = r"""
enter "$1"
exec 4<&0
{ cat >/dev/null <&4; kill -9 $$ 2>/dev/null; } >/dev/null 2>&1 &
snap() {
  find . ! -name . -prune -exec stat -c '%i %s %y %z %n' -- {} + 2>/dev/null ||
    find . ! -name . -prune -exec stat -f '%i %z %Fm %Fc %N' -- {} + 2>/dev/null
}
nap() { sleep 0.2 2>/dev/null || sleep 1; }
old=$(snap)
printf 'ok\n'
while :; do
  nap
  new=$(snap)
  [ "$new" = "$old" ] && continue
  while last=$new; nap; new=$(snap); [ "$new" != "$last" ]; do :; done
  printf '%s\0%s\0' "$old" "$new"
  old=$new
done
"""
"""Argument: the folder. Writes the listing before and after each change, until its input is closed."""
