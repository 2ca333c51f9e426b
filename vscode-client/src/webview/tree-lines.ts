// Lays the tree of a session out as lines: a branch is indented only where it parts from another. Pure.

import type { TreeNode } from "../shared/wire.js";

export interface TreeLine {
  node: TreeNode;
  depth: number;
  /** Whether it lies on the way to the entry that the next words hang on. */
  onBranch: boolean;
  isLeaf: boolean;
}

/** Gives the lines, parents before their children; the branch in force comes first where branches part. */
export function treeLines(nodes: readonly TreeNode[], leaf: string | null): TreeLine[] {
  const byId = new Map(nodes.map((node) => [node.entry, node]));
  const children = childrenOf(nodes, byId);
  const branch = branchOf(leaf, byId);
  const lines: TreeLine[] = [];
  // A stack instead of recursion: a long session is one long branch.
  const waiting = sorted(children.get(undefined) ?? [], branch, 0);
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { node, depth } = next;
    lines.push({ node, depth, onBranch: branch.has(node.entry), isLeaf: node.entry === leaf });
    const below = children.get(node.entry) ?? [];
    waiting.push(...sorted(below, branch, below.length > 1 ? depth + 1 : depth));
  }
  return lines;
}

type ById = ReadonlyMap<string, TreeNode>;

/** What hangs on an entry that is not there hangs on the root. */
function childrenOf(nodes: readonly TreeNode[], byId: ById): Map<string | undefined, TreeNode[]> {
  const children = new Map<string | undefined, TreeNode[]>();
  for (const node of nodes) {
    const parent = node.parent !== undefined && byId.has(node.parent) ? node.parent : undefined;
    const known = children.get(parent);
    if (known) known.push(node);
    else children.set(parent, [node]);
  }
  return children;
}

function branchOf(leaf: string | null, byId: ById): Set<string> {
  const branch = new Set<string>();
  for (let at = leaf ?? undefined; at !== undefined && !branch.has(at); at = byId.get(at)?.parent)
    branch.add(at);
  return branch;
}

type Waiting = { node: TreeNode; depth: number };

/** What is taken next stands last; the branch in force is taken first. */
function sorted(nodes: readonly TreeNode[], branch: ReadonlySet<string>, depth: number): Waiting[] {
  const first = nodes.filter((node) => branch.has(node.entry));
  const others = nodes.filter((node) => !branch.has(node.entry));
  return [...first, ...others].reverse().map((node) => ({ node, depth }));
}
