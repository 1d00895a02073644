import { Changes } from "./changes.ts";

/** The script of the worker that a browser's tabs share. It ends with the last of them. */
const changes = new Changes();

addEventListener("connect", (event) => {
  const [port] = event instanceof MessageEvent ? event.ports : [];
  if (port !== undefined) changes.connect(port);
});
