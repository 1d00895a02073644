import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { Writable } from "node:stream";

/**
 * A secret from standard input, since arguments can be read by everybody on the machine: prompted for without an echo at a
 * terminal, else everything that comes, but for the end of its line.
 */
export async function readSecret(question: string): Promise<string> {
  const { stdin } = process;
  if (!stdin.isTTY) return (await text(stdin)).replace(/\r?\n$/, "");
  process.stderr.write(`${question}: `);
  // Nothing that is typed is shown.
  const output = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output, terminal: true });
  try {
    return await new Promise<string>((resolve) => {
      lines.once("line", resolve);
      lines.once("close", () => resolve(""));
    });
  } finally {
    lines.close();
    process.stderr.write("\n");
  }
}
