import type { Socket } from "node:net";

const DRIP_MS = 20;
/** Where an end by time is what is awaited. */
export const SHORT_MS = 300;
export const OK = "HTTP/1.1 200 OK\r\n";

/** Writes again and again for as long as there is a connection. */
export function drip(socket: Socket, text: () => string): void {
  const timer = setInterval(() => void socket.write(text()), DRIP_MS);
  socket.once("close", () => clearInterval(timer));
}

/** Writes as fast as it is taken, for ever. */
export function flood(socket: Socket, text: string): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(text));
  };
  socket.on("drain", more);
  more();
}

/** What a receiver does once a request has begun to come, how that ends, and within which time. */
export interface Trick {
  readonly name: string;
  readonly behave: (socket: Socket) => void;
  readonly ends: string;
  readonly timeoutMs?: number;
}

export const nothing = (): void => {};
export const TRICKS: readonly Trick[] = [
  { name: "no answer at all", behave: nothing, ends: "timed out", timeoutMs: SHORT_MS },
  {
    name: "headers that come byte by byte",
    behave: (socket) => {
      socket.write(`${OK}x: `);
      drip(socket, () => "a");
    },
    ends: "timed out",
    timeoutMs: SHORT_MS,
  },
  {
    name: "interim answers that come one by one",
    behave: (socket) => drip(socket, () => "HTTP/1.1 102 Processing\r\n\r\n"),
    ends: "its headers are too large",
  },
  {
    name: "a storm of interim answers",
    behave: (socket) => flood(socket, "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".repeat(100)),
    ends: "its headers are too large",
  },
  {
    name: "a huge header",
    behave: (socket) => socket.write(`${OK}x: ${"a".repeat(17 * 1_024)}\r\n\r\n`),
    ends: "its headers are too large",
  },
  {
    name: "headers without end",
    behave: (socket) => {
      socket.write(OK);
      flood(socket, "x: y\r\n".repeat(100));
    },
    ends: "its headers are too large",
  },
  {
    name: "a reason phrase without end",
    behave: (socket) => {
      socket.write("HTTP/1.1 200 ");
      flood(socket, "a".repeat(1_000));
    },
    ends: "its headers are too large",
  },
  {
    name: "another protocol",
    behave: (socket) =>
      socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"),
    ends: "it requested another protocol",
  },
  {
    name: "another protocol that is not named",
    behave: (socket) => socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
    ends: "it requested another protocol",
  },
  { name: "a connection that is closed", behave: (socket) => socket.end(), ends: "the connection was cut" },
  {
    name: "a connection that is cut amid the headers",
    behave: (socket) => socket.write(`${OK}x: y\r\n`, () => void socket.destroy()),
    ends: "the connection was cut",
  },
  { name: "garbage", behave: (socket) => socket.write("garbage\r\n\r\n"), ends: "its answer is not HTTP" },
  {
    name: "binary garbage",
    behave: (socket) => socket.write(Buffer.alloc(4_096, 0x80)),
    ends: "its answer is not HTTP",
  },
  {
    name: "a status that is none",
    behave: (socket) => socket.write("HTTP/1.1 007 Bond\r\n\r\n"),
    ends: "its answer is not HTTP",
  },
  {
    name: "a header that is none",
    behave: (socket) => socket.write(`${OK}no header\r\n\r\n`),
    ends: "its answer is not HTTP",
  },
  {
    name: "two lengths that contradict each other",
    behave: (socket) => socket.write(`${OK}content-length: 1\r\ncontent-length: 2\r\n\r\nab`),
    ends: "its answer is not HTTP",
  },
  {
    name: "a body that breaks off",
    behave: (socket) => socket.write(`${OK}content-length: 100\r\n\r\nabc`, () => void socket.destroy()),
    ends: "answered 200",
  },
  {
    name: "a body whose chunks are garbage",
    behave: (socket) => socket.write(`${OK}transfer-encoding: chunked\r\n\r\nzz\r\n`),
    ends: "answered 200",
  },
  {
    name: "a body that does not come",
    behave: (socket) => socket.write(`${OK}content-length: 100\r\n\r\n`),
    ends: "answered 200",
  },
  {
    name: "a body that comes byte by byte",
    behave: (socket) => {
      socket.write(`${OK}content-length: 1000000\r\n\r\n`);
      drip(socket, () => "a");
    },
    ends: "answered 200",
  },
  {
    name: "a body without end",
    behave: (socket) => {
      socket.write(`${OK}\r\n`);
      flood(socket, "a".repeat(64 * 1_024));
    },
    ends: "answered 200",
  },
  {
    name: "an answer after a few interim ones",
    behave: (socket) =>
      socket.write(`${"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(3)}${OK}\r\n`, () => void socket.end()),
    ends: "answered 200",
  },
];
