/**
 * A tool's texts for its user, a model that knows only the list of tools. Programmers read the operation's own texts. A
 * path names a field through objects and arrays alike: `rules.params.from`.
 */
export interface ToolText {
  /** Purpose, use, meaning of the answers and next steps: all that most models see of a tool. */
  readonly description: string;
  /** Argument texts by path, where the contract's description is missing or addresses programmers. */
  readonly arguments: Readonly<Record<string, string>>;
  /**
   * Result fields named in the tool's schema, by path, with a text if the name does not suffice; answers may have more.
   */
  readonly results: Readonly<Record<string, string>>;
}

/** Meaning of a refusal in a toolset's terms and the model's next step, one or two sentences each. */
export interface RefusalText {
  readonly what: string;
  readonly next: string;
}
