// One window of VS Code, as its user sees and uses it.
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { ARTEFACTS } from "./ground.ts";
import { Panel } from "./panel.ts";
import { longestTaskMs } from "./tasks.ts";
import { PATIENCE_MS, until } from "./until.ts";

/** Of a window, in pixels. */
export const WIDTH = 1440;
const LINE_END = /\u00a0/g;

export class Window {
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
    page.setDefaultTimeout(PATIENCE_MS);
  }

  get panel(): Panel {
    return this.#panelAt(0);
  }

  /** The panel in a tab of the editor, where the one in the side bar was opened before it. */
  get panelTab(): Panel {
    return this.#panelAt(1);
  }

  #panelAt(index: number): Panel {
    const page = this.page.frameLocator(`iframe.webview.ready >> nth=${index}`);
    return new Panel(page.frameLocator("iframe#active-frame"));
  }

  /** Opens the panel by its item in the status bar, and waits until it shows something. */
  async openPanel(): Promise<void> {
    await this.page.locator('.statusbar-item .statusbar-item-label[aria-label^="Tiller"]').click();
    // Else the tooltip of the item lies over the window.
    await this.page.mouse.move(WIDTH / 2, 0);
    await this.#panelIsBuilt();
  }

  /** Presses a button in the title of the panel. */
  async pressTitle(name: string): Promise<void> {
    await this.page.locator(".part.auxiliarybar .title").getByRole("button", { name }).first().click();
  }

  /** Loads the window anew, with the panel open as it was. */
  async reload(): Promise<void> {
    await this.page.reload();
    await this.#panelIsBuilt();
  }

  async #panelIsBuilt(): Promise<void> {
    await this.panel.frame.locator("#app > *").first().waitFor();
  }

  /** Runs a command by its title, from the palette. */
  async command(title: string): Promise<void> {
    await this.page.keyboard.press("F1");
    const box = this.page.locator(".quick-input-widget input");
    await box.waitFor();
    await box.fill(`>${title}`);
    const row = this.page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first();
    await row.waitFor();
    await this.page.keyboard.press("Enter");
    // What the command asks stands in the same box.
    await until(
      `the end of the palette for ${title}`,
      async () => !((await box.isVisible()) && (await box.inputValue()).startsWith(">")),
    );
  }

  /** Waits for a list or box of VS Code with that title, types into it and presses Enter. Gives the type of its field. */
  async answerBox(title: string | RegExp, words: string): Promise<string> {
    const box = this.page.locator(".quick-input-widget:visible", {
      has: this.page.locator(".quick-input-title", { hasText: title }),
    });
    const field = box.locator(".quick-input-box input");
    await field.fill(words);
    const kind = (await field.getAttribute("type")) ?? "text";
    // A list that still loads has nothing that Enter could take; a box has no list.
    if (await box.locator(".quick-input-list").isVisible()) {
      await box.locator(".monaco-list-row.focused", { hasText: words }).waitFor();
    }
    await field.press("Enter");
    await box.waitFor({ state: "hidden" });
    return kind;
  }

  /** Puts a picture of one colour into the clipboard. */
  async copyPicture(width: number, height: number): Promise<void> {
    await this.page.evaluate(
      async ([width, height]) => {
        const canvas = Object.assign(document.createElement("canvas"), { width, height });
        const context = canvas.getContext("2d");
        if (!context) throw new Error("no canvas");
        context.fillStyle = "orange";
        context.fillRect(0, 0, width, height);
        const drawn = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
        if (!drawn) throw new Error("no picture");
        await navigator.clipboard.write([new ClipboardItem({ "image/png": drawn })]);
      },
      [width, height] as const,
    );
  }

  /** Puts lines into the clipboard, numbered from 0, until they have so many characters. */
  async copyLines(characters: number): Promise<string[]> {
    return this.page.evaluate(async (characters) => {
      const lines: string[] = [];
      for (let size = 0; size < characters; size += (lines.at(-1)?.length ?? 0) + 1)
        lines.push(`line ${lines.length} of many`);
      await navigator.clipboard.writeText(lines.join("\n"));
      return [lines[0] ?? "", lines.at(-1) ?? ""];
    }, characters);
  }

  /** Opens a file of the folder from the explorer and puts the cursor into it. */
  async openFile(name: string): Promise<void> {
    await this.page.keyboard.press("Control+Shift+E");
    const row = this.page.locator(".explorer-folders-view .monaco-list-row", { hasText: name }).first();
    await row.dblclick();
    await this.tab(name).waitFor();
    await this.focusEditor();
  }

  /** Pulls the side bar to a width, as a user who writes a lot does. */
  async widenPanel(width: number): Promise<void> {
    const edge = await this.page.locator(".part.auxiliarybar").boundingBox();
    if (edge === null) throw new Error("the secondary side bar is closed");
    // Between the parts of the window there is a gap of some pixels.
    const [x, y] = [edge.x - 2, edge.y + edge.height / 2];
    await this.page.mouse.move(x, y);
    await this.page.mouse.down();
    await this.page.mouse.move(edge.x + edge.width - width, y, { steps: 5 });
    await this.page.mouse.up();
    // An edge under the pointer is drawn in colour.
    await this.page.mouse.move(x - width, y);
  }

  async panelWidth(): Promise<number> {
    return (await this.page.locator(".part.auxiliarybar").boundingBox())?.width ?? 0;
  }

  /** Waits until the window has a theme of that kind, by VS Code's own name of it. */
  async untilTheme(kind: string): Promise<void> {
    await this.page.locator(`.monaco-workbench.${kind}`).waitFor();
  }

  tab(name: string): Locator {
    return this.page.locator(`.tabs-container .tab[data-resource-name="${name}"]`);
  }

  async focusEditor(): Promise<void> {
    await this.page.locator(".editor-group-container.active .monaco-editor .view-lines").first().click();
  }

  /** The text of the editor in front, as far as it can be seen. */
  async editorText(): Promise<string> {
    const lines = this.page.locator(".editor-group-container.active .monaco-editor .view-line");
    // Lines stand in the document in the order in which they were drawn, not in that of the text.
    const drawn = await lines.evaluateAll((all) =>
      all.map((one) => ({ top: Number.parseFloat((one as HTMLElement).style.top), text: one.textContent })),
    );
    return drawn
      .sort((one, other) => one.top - other.top)
      .map((one) => (one.text ?? "").replace(LINE_END, " "))
      .join("\n");
  }

  async untilEditorText(what: string, fits: (text: string) => boolean): Promise<string> {
    return until(what, async () => {
      const text = await this.editorText();
      return fits(text) && text;
    });
  }

  async isDirty(name: string): Promise<boolean> {
    return (await this.tab(name).getAttribute("class"))?.split(" ").includes("dirty") ?? false;
  }

  /** Trusts the folder, by the banner of Restricted Mode. */
  async grantTrust(): Promise<void> {
    await this.page.getByRole("link", { name: "Manage" }).or(this.page.getByText("Manage")).first().click();
    await this.page
      .locator(".workspace-trust-editor")
      .getByRole("button", { name: "Trust", exact: true })
      .click();
    // Escape does not close it.
    const close = this.page.locator(".monaco-modal-editor-block .codicon-close").first();
    if (await close.isVisible()) await close.click();
  }

  /** Plays something, and gives the longest time, in milliseconds, for which the page did nothing else meanwhile. */
  async longestTaskMs(play: () => Promise<void>): Promise<number> {
    const browser = this.page.context().browser();
    if (browser === null) throw new Error("the browser has gone");
    return longestTaskMs(browser, this.page, play);
  }

  /** Keeps a picture of the window. */
  async picture(name: string): Promise<void> {
    await this.page.screenshot({ path: join(ARTEFACTS, `${name}.png`) });
  }
}
