import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { Writable } from "node:stream";

/**
 * Reads a secret from standard input, since everybody on the machine can read arguments. At a terminal it prompts
 * without echo; otherwise it reads all input without the final line break.
 */
export async function readSecret(question: string): Promise<string> {
  const { stdin } = process;
  if (!stdin.isTTY) return (await text(stdin)).replace(/\r?\n$/, "");
  process.stderr.write(`${question}: `);
  // Discards the echo.
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
