"""Shell scripts that start and end the processes of a remote workspace: POSIX sh; Linux offers more on processes, which is used.

The processes of a command carry the marks of `agent_core.workspace.processes.mark`: a variable, and a limit that limits
nothing. Both are looked for in /proc. Without /proc the process group and the parents identify them.
"""

from typing import Final

MEMBERS: Final = r"""
members() {
  set +f
  if [ -r /proc/self/stat ]; then
    marked=$( { grep -lF -- "$mark" /proc/[0-9]*/environ; grep -l -- " $limit " /proc/[0-9]*/limits; } 2>/dev/null | cut -d/ -f3 | tr '\n' ' ')
    cat /proc/[0-9]*/stat 2>/dev/null | awk -v marked="$marked" -v first="$first" '
      BEGIN { n = split(marked, m, " "); for (i = 1; i <= n; i++) is[m[i]] = 1 }
      { pid = $1; sub(/^.*\) /, "")
        if (($1 == "Z" || $1 == "X") && $18 <= 1) next
        parent[pid] = $2; if ($4 == first) is[pid] = 1 }
      END { do { grown = 0
          for (p in parent) if (!(p in is) && (parent[p] in is) && (parent[p] in parent)) { is[p] = 1; grown = 1 }
        } while (grown)
        for (p in parent) if (p in is) printf "%s ", p }'
  else
    ps -A -o pid= -o ppid= -o pgid= -o stat= | awk -v first="$first" '
      $4 !~ /^Z/ { parent[$1] = $2; if ($3 == first || $1 == first) is[$1] = 1 }
      END { do { grown = 0
          for (p in parent) if (!(p in is) && (parent[p] in is)) { is[p] = 1; grown = 1 }
        } while (grown)
        for (p in parent) if (p in is) printf "%s ", p }'
  fi
  set -f
}
nap() { sleep 0.02 2>/dev/null || sleep 1; }
send() { for p in $left; do kill "-$1" "$p" 2>/dev/null; done; seen="$seen $left"; }
end() {
  seen=; left=$(members)
  for s in TERM INT; do
    [ -n "$left" ] || break
    send "$s"
    i=$1
    while left=$(members); [ -n "$left" ] && [ "$i" -gt 0 ]; do i=$((i - 1)); nap; done
  done
  i=60
  while [ -n "$left" ] && [ "$i" -gt 0 ]; do i=$((i - 1)); send KILL; nap; left=$(members); done
}
"""

START: Final = r"""
exec 3>&2 4<&0
say() { printf 'tiller %s\n' "$*" >&3; }
cd -P -- "$cwd" 2>/dev/null || { say cwd; exit 0; }
find_program() {
  case $1 in
    */*)
      [ -e "$1" ] || { say ENOENT; exit 0; }
      [ -f "$1" ] && [ -x "$1" ] || { say EACCES; exit 0; }
      program=$1; return ;;
  esac
  IFS=:
  for d in $search; do
    case $d in /*) ;; *) continue ;; esac
    [ -f "$d/$1" ] && [ -x "$d/$1" ] || continue
    real=$(cd -P -- "$d" && pwd -P) || continue
    inside=
    for root in $roots; do case $real/ in "$root"/*) inside=1 ;; esac; done
    [ -n "$inside" ] || { program=$d/$1; unset IFS; return; }
  done
  say ENOENT; exit 0
}
find_program "$1"
shift
if command -v setsid >/dev/null 2>&1; then s=setsid
elif command -v perl >/dev/null 2>&1; then s="perl -MPOSIX -e POSIX::setsid();exec(@ARGV)"
else s=; fi
first=-
case $input in
  open)
    { cat >/dev/null; (end 3) & } <&4 >/dev/null 2>&1 3>&- &
    watch=$!
    exec </dev/null ;;
  *) watch= ;;
esac
$s sh -c "$inner" sh "$program" "$@" 4<&-
code=$?
[ -z "$watch" ] || kill -9 "$watch" 2>/dev/null
say end "$code" $(members)
"""
"""Variables: cwd, search (a PATH), roots, mark, limit, input (`open`: the input is empty, and when it is closed a watch ends
everything), inner. The process that ends them is not the watch, which is killed when the first process has ended. Arguments: the
program and its arguments. Reports on standard error: why it was not started, `pid N`, and `end CODE` with the processes that are
left."""

INNER: Final = r"""
printf 'tiller pid %s\n' "$$" >&3
ulimit -S -w LIMIT 2>/dev/null || ulimit -S -x LIMIT 2>/dev/null
exec "$@" 2>&1 3>&-
"""
"""Runs as the first process, after the changes of the environment; LIMIT is replaced."""

END: Final = r"""
end "$tries"
printf 'ok\n%s\n%s\n' "$seen" "$left"
"""
"""Variables: first, mark, limit, tries. Writes the processes that got a signal, and those that are left."""
