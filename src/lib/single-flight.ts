/** Work that is under way once for all who ask for it meanwhile. Each piece of it has a name, and nothing is kept after its end. */
export class SingleFlight<T> {
  readonly #inFlight = new Map<string, Promise<T>>();

  run(name: string, work: () => Promise<T>): Promise<T> {
    const known = this.#inFlight.get(name);
    if (known !== undefined) return known;
    const begun = work().finally(() => this.#inFlight.delete(name));
    this.#inFlight.set(name, begun);
    return begun;
  }
}
