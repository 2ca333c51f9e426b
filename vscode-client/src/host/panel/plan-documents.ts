// Plans as Markdown documents that the user may edit before they are approved.

/** As much of a text document of the editor as a plan needs. */
export interface PlanDocument {
  readonly uri: { toString(): string };
  readonly languageId: string;
  readonly isClosed: boolean;
  getText(): string;
}

export interface PlanEditor {
  /** Makes a Markdown document that has no file yet. */
  create(markdown: string): Promise<PlanDocument>;
  show(document: PlanDocument): Promise<void>;
  /** Finds a document that a tab shows, also one that the editor restored and nobody looked at yet. */
  find(uri: string): Promise<PlanDocument | undefined>;
}

/** Where the documents of plans are kept, by the hash of the plan that they began with, over a reload of the window. */
export interface KeptPlans {
  get(): Readonly<Record<string, string>>;
  set(uris: Readonly<Record<string, string>>): void;
}

const KEPT = 20;

export class PlanDocuments {
  readonly #editor: PlanEditor;
  readonly #kept: KeptPlans;

  constructor(editor: PlanEditor, kept: KeptPlans) {
    this.#editor = editor;
    this.#kept = kept;
  }

  /** Opens a plan as a Markdown document; one that is open already is shown again. */
  async edit(sha256: string, markdown: string): Promise<void> {
    const document = (await this.#open(sha256)) ?? (await this.#editor.create(markdown));
    const others = Object.entries(this.#kept.get()).filter(([hash]) => hash !== sha256);
    this.#kept.set(Object.fromEntries([...others, [sha256, document.uri.toString()]].slice(-KEPT)));
    await this.#editor.show(document);
  }

  /** Gives the text of the document of a plan; nothing when it is not open. */
  async text(sha256: string): Promise<string | undefined> {
    return (await this.#open(sha256))?.getText();
  }

  /** Forgets a document that was closed: the editor gives its name to the next one without a file. */
  closed(uri: string): void {
    const kept = Object.entries(this.#kept.get());
    const rest = kept.filter(([, one]) => one !== uri);
    if (rest.length < kept.length) this.#kept.set(Object.fromEntries(rest));
  }

  async #open(sha256: string): Promise<PlanDocument | undefined> {
    const uri = this.#kept.get()[sha256];
    const document = uri === undefined ? undefined : await this.#editor.find(uri);
    // A document of another language took over the name while the extension did not run.
    return document?.isClosed || document?.languageId !== "markdown" ? undefined : document;
  }
}
