/**
 * A tool in the words of its user, a model that knows nothing but the list of tools. What programmers read of the same
 * operation stays with the operation. A path names a field through objects and arrays alike: `rules.params.from`.
 */
export interface ToolText {
  /** What it is for, when to use it, what its answers mean, and what to do then: all that most models see of it. */
  readonly description: string;
  /** By path: what to give, where the contract's own description speaks to programmers or there is none. */
  readonly arguments: Readonly<Record<string, string>>;
  /** By path: what of an answer its schema names, with a word where the name does not say it; the rest may be there too. */
  readonly results: Readonly<Record<string, string>>;
}

/** What a refusal means in the words of a toolset, and what its model had better do next; a sentence or two each. */
export interface RefusalText {
  readonly what: string;
  readonly next: string;
}
