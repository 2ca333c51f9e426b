import assert from "node:assert/strict";
import { test } from "node:test";
import { type PlanDocument, PlanDocuments, type PlanEditor } from "../../src/host/panel/plan-documents.js";

/** An editor whose documents without a file outlive the window, as VS Code restores them. */
class Editor implements PlanEditor {
  readonly documents = new Map<string, { text: string; languageId: string }>();
  readonly shown: string[] = [];
  kept: Readonly<Record<string, string>> = {};

  /** Loads the window anew: all that the extension had in memory is gone. */
  window(): PlanDocuments {
    return new PlanDocuments(this, {
      get: () => this.kept,
      set: (uris) => {
        this.kept = JSON.parse(JSON.stringify(uris)) as Record<string, string>;
      },
    });
  }

  open(text: string, languageId: string): PlanDocument {
    let number = 1;
    while (this.documents.has(`untitled:Untitled-${number}`)) number += 1;
    const uri = `untitled:Untitled-${number}`;
    this.documents.set(uri, { text, languageId });
    return this.#document(uri);
  }

  async create(markdown: string): Promise<PlanDocument> {
    return this.open(markdown, "markdown");
  }

  async show({ uri }: PlanDocument): Promise<void> {
    this.shown.push(uri.toString());
  }

  async find(uri: string): Promise<PlanDocument | undefined> {
    return this.documents.has(uri) ? this.#document(uri) : undefined;
  }

  write(uri: string, text: string): void {
    const document = this.documents.get(uri);
    assert.ok(document);
    document.text = text;
  }

  #document(uri: string): PlanDocument {
    const { documents } = this;
    return {
      uri,
      languageId: documents.get(uri)?.languageId ?? "",
      get isClosed() {
        return !documents.has(uri);
      },
      getText: () => documents.get(uri)?.text ?? "",
    };
  }
}

test("a plan that was edited is found again after the window was reloaded, and is shown, not opened twice", async () => {
  const editor = new Editor();
  const plans = editor.window();
  await plans.edit("one", "# One");
  await plans.edit("two", "# Two");
  editor.write("untitled:Untitled-1", "# One, edited");
  const reloaded = editor.window();
  assert.equal(await reloaded.text("one"), "# One, edited");
  assert.equal(await reloaded.text("two"), "# Two");
  assert.equal(await reloaded.text("three"), undefined);
  await reloaded.edit("one", "# One");
  assert.equal(editor.documents.size, 2);
  assert.deepEqual(editor.shown, ["untitled:Untitled-1", "untitled:Untitled-2", "untitled:Untitled-1"]);
});

test("a document that was closed is no plan any more, whatever is opened under its name", async () => {
  const editor = new Editor();
  const plans = editor.window();
  await plans.edit("one", "# One");
  editor.documents.clear();
  assert.equal(await plans.text("one"), undefined);
  plans.closed("untitled:Untitled-1");
  editor.open("notes", "markdown");
  assert.equal(await plans.text("one"), undefined);
  assert.equal(await editor.window().text("one"), undefined);
  await plans.edit("one", "# One");
  assert.equal(await plans.text("one"), "# One");
  assert.deepEqual(editor.shown, ["untitled:Untitled-1", "untitled:Untitled-2"]);
});

test("a document of another language that took over the name is not sent as a plan", async () => {
  const editor = new Editor();
  await editor.window().edit("one", "# One");
  editor.documents.clear();
  editor.open("secret notes", "plaintext");
  assert.equal(await editor.window().text("one"), undefined);
});

test("only the newest plans are kept", async () => {
  const editor = new Editor();
  const plans = editor.window();
  for (let number = 0; number < 30; number += 1) await plans.edit(`plan ${number}`, "# Plan");
  assert.equal(Object.keys(editor.kept).length, 20);
  assert.equal(await plans.text("plan 9"), undefined);
  assert.equal(await plans.text("plan 29"), "# Plan");
});
