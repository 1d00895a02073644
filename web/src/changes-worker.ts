import { Changes } from "./changes.ts";

/** Script of the worker that a browser's tabs share. The worker ends with the last tab. */
const changes = new Changes();

addEventListener("connect", (event) => {
  const [port] = event instanceof MessageEvent ? event.ports : [];
  if (port !== undefined) changes.connect(port);
});
