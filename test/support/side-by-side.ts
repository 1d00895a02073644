/**
 * Tests of one `describe` that share nothing but its set-up and mostly wait for the same clock. They begin together, and
 * each is told of by itself.
 */
export function sideBySide(tests: Readonly<Record<string, () => Promise<void>>>): void {
  const begun = new Map<string, Promise<void>>();
  before(() => {
    for (const [title, play] of Object.entries(tests)) {
      const ended = play();
      // What it fails with is told by its own test.
      ended.catch(() => undefined);
      begun.set(title, ended);
    }
  });
  for (const title of Object.keys(tests)) {
    it(title, () => begun.get(title) ?? Promise.reject(new Error("has not begun")));
  }
}
