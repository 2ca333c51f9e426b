// Runs in the page: what the right edge of the panel cuts off. Used by the tests of the panel and by those in VS Code.

/** Names what is cut off by the edge of the panel, other than what scrolls or is shortened by itself. */
export function overEdge(): string[] {
  const scrolls = (element: Element): boolean =>
    element.closest("pre, .diff, table, .clip, .unseen, .path-text, .tool-title") !== null;
  return [...document.querySelectorAll("#app *")]
    .filter((element) => !scrolls(element) && element.getBoundingClientRect().right > window.innerWidth + 1)
    .map((element) => element.outerHTML.slice(0, 120));
}
