/** What several tests go through together: it is begun once all are ready, and ended once all have done their part in it. */
export interface Disturbance {
  begin(): unknown;
  end(): unknown;
}

/** Before the disturbance, in it, and after it: each part gives the next one. */
export type Disturbed = () => Promise<() => Promise<() => Promise<void>>>;

/**
 * Tests of one `describe` that share nothing but its set-up and one disturbance: each part of them runs side by side, so
 * that what answers only after its time-out is waited for once. Each is told of by itself.
 */
export function disturbed(disturbance: Disturbance, tests: Readonly<Record<string, Disturbed>>): void {
  const ended = new Map<string, Promise<void>>();
  before(async () => {
    const ready = Object.entries(tests).map(([title, prepare]) => ({ title, part: prepare() }));
    await allSettled(ready);
    await disturbance.begin();
    const done = ready.map(({ part, title }) => ({ title, part: part.then((act) => act()) }));
    await allSettled(done);
    await disturbance.end();
    for (const { part, title } of done) {
      const last = part.then((see) => see());
      // What it fails with is told by its own test.
      last.catch(() => undefined);
      ended.set(title, last);
    }
  });
  for (const title of Object.keys(tests)) {
    it(title, () => ended.get(title) ?? Promise.reject(new Error("has not begun")));
  }
}

const allSettled = (parts: readonly { readonly part: Promise<unknown> }[]): Promise<unknown> =>
  Promise.allSettled(parts.map(({ part }) => part));
