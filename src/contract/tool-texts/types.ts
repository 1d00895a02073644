/**
 * A tool in the words of its user, a model that knows nothing but the list of tools. What programmers read of the same
 * operation stays with the operation. A path names a field through objects and arrays alike: `rules.params.from`.
 */
export interface ToolText {
  /** Purpose, use, meaning of the answers and next steps: all that most models see of a tool. */
  readonly description: string;
  /** Argument texts by path, where the contract's description is missing or addresses programmers. */
  readonly arguments: Readonly<Record<string, string>>;
  /** Result fields that the schema names, by path, with a text if the name is not enough; answers may have more. */
  readonly results: Readonly<Record<string, string>>;
}

/** Meaning of a refusal in the words of a toolset and the model's next step, a sentence or two each. */
export interface RefusalText {
  readonly what: string;
  readonly next: string;
}
