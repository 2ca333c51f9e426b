"""How an exported session looks, by day and by night."""

STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1f2328; --faint: #59636e; --line: #d1d9e0; --block: #f6f8fa;
  --user: #ddf4ff; --link: #0550ae; --label: #fff8c5; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --page: #0d1117; --ink: #e6edf3; --faint: #9198a1; --line: #3d444d; --block: #161b22; --user: #10263f;
    --link: #79c0ff; --label: #4b3a00; --bad: #ff9492; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem 4rem; background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; } a { color: var(--link); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: 1rem 0; }
dt { color: var(--faint); } dd { margin: 0; }
article { margin: 1rem 0; unicode-bidi: isolate; }
article > h2 { margin: 1.6rem 0 .4rem; font-size: .9rem; color: var(--faint); font-weight: 600; }
article.user > pre.typed { background: var(--user); padding: .7rem .9rem; border-radius: .5rem; }
article.summary { border-left: .25rem solid var(--line); padding-left: 1rem; }
pre { margin: .5rem 0; white-space: pre-wrap; unicode-bidi: plaintext; font: .85rem/1.5 ui-monospace, monospace; }
pre.typed { font: inherit; }
pre.block, .prose pre { background: var(--block); border: 1px solid var(--line); border-radius: .4rem;
  padding: .6rem .8rem; max-height: 40rem; overflow: auto; }
code { font-family: ui-monospace, monospace; font-size: .9em; background: var(--block); border-radius: .2rem; }
details { margin: .5rem 0; } summary { cursor: pointer; color: var(--faint); }
details.failed > summary { color: var(--bad); }
p.remark, p.forks { color: var(--faint); font-size: .9rem; }
mark { background: var(--label); color: inherit; border-radius: .2rem; padding: 0 .35rem; }
img { max-width: 100%; height: auto; border: 1px solid var(--line); }
table { border-collapse: collapse; } th, td { border: 1px solid var(--line); padding: .25rem .6rem; }
section { border-top: 2px solid var(--line); margin-top: 2rem; padding-top: .5rem; }
@media print { pre.block { max-height: none; } }
"""
