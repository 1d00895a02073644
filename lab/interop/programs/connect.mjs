// Pays through mcp-remote, given nothing but the address, as a client does that knows local servers alone.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const [, , address, payment, remote] = process.argv;
const child = spawn(process.execPath, [remote, address, "--allow-http"], {
  stdio: ["pipe", "pipe", "inherit"],
});
const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

const clientInfo = { name: "interop", version: "1" };
send({
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo },
});
for await (const line of createInterface(child.stdout)) {
  const { id } = JSON.parse(line);
  if (id === 1) {
    send({ method: "notifications/initialized" });
    const params = { name: "create_card_payment", arguments: JSON.parse(payment) };
    send({ id: 2, method: "tools/call", params });
  }
  if (id === 2) child.kill();
}
if (child.exitCode === null && child.signalCode === null) await once(child, "close");
