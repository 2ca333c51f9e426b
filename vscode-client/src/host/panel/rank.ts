// Which paths fit what was typed behind an @. Pure.

const BOUNDARY = /[/\\._\- ]/;

/** Gives the best matches first: the letters of the query must come in that order. */
export function rank(query: string, paths: readonly string[], most: number): string[] {
  const wanted = query.toLowerCase().replaceAll("\\", "/");
  if (wanted === "") return [...paths].slice(0, most);
  const scored: { path: string; score: number }[] = [];
  for (const path of paths) {
    const score = scoreOf(wanted, path);
    if (score !== undefined) scored.push({ path, score });
  }
  scored.sort((one, other) => other.score - one.score || one.path.length - other.path.length);
  return scored.slice(0, most).map((one) => one.path);
}

/** Higher is better: whole words, beginnings of names and letters that follow one another count. */
function scoreOf(wanted: string, path: string): number | undefined {
  const low = path.toLowerCase();
  const name = low.slice(low.lastIndexOf("/") + 1);
  if (name === wanted) return 1000;
  if (name.startsWith(wanted)) return 800;
  if (name.includes(wanted)) return 600;
  if (low.includes(wanted)) return 400;
  let score = 0;
  let from = 0;
  for (const letter of wanted) {
    const at = low.indexOf(letter, from);
    if (at < 0) return undefined;
    if (at === from) score += 3;
    if (at === 0 || BOUNDARY.test(low.charAt(at - 1))) score += 5;
    from = at + 1;
  }
  return score;
}
