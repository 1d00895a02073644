/** Shares work in flight among all callers of the same name. Nothing is kept after its end. */
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
