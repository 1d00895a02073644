import { createSocket } from "node:dgram";
import { once } from "node:events";

const HEADER_BYTES = 12;
const ANSWERED = 0x8180;
const NAME_OF_QUESTION = 0xc00c;
const [TXT, INTERNET] = [16, 1];

export interface DnsServer {
  /** Address and port, as settings name it. */
  readonly address: string;
  /** Texts by the names that they are published at. */
  readonly texts: Map<string, string>;
  close(): Promise<void>;
}

/** A DNS server on the loopback that knows TXT records alone. */
export async function startDnsServer(): Promise<DnsServer> {
  const texts = new Map<string, string>();
  const socket = createSocket("udp4").unref();
  socket.on("message", (query, { address, port }) => {
    const end = query.indexOf(0, HEADER_BYTES) + 5;
    const answer = answerOf(texts.get(nameIn(query).toLowerCase()));
    const header = Buffer.alloc(HEADER_BYTES);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(ANSWERED, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(answer.length > 0 ? 1 : 0, 6);
    socket.send(Buffer.concat([header, query.subarray(HEADER_BYTES, end), answer]), port, address);
  });
  await once(socket.bind(0, "127.0.0.1"), "listening");
  return {
    address: `127.0.0.1:${socket.address().port}`,
    texts,
    close: () => new Promise((resolve) => void socket.close(() => resolve())),
  };
}

function nameIn(query: Buffer): string {
  const labels: string[] = [];
  for (let at = HEADER_BYTES; query[at] !== 0; at += 1 + (query[at] ?? 0))
    labels.push(query.toString("ascii", at + 1, at + 1 + (query[at] ?? 0)));
  return labels.join(".");
}

function answerOf(text: string | undefined): Buffer {
  if (text === undefined) return Buffer.alloc(0);
  const fixed = Buffer.alloc(12);
  fixed.writeUInt16BE(NAME_OF_QUESTION, 0);
  fixed.writeUInt16BE(TXT, 2);
  fixed.writeUInt16BE(INTERNET, 4);
  fixed.writeUInt16BE(1 + text.length, 10);
  return Buffer.concat([fixed, Buffer.from([text.length]), Buffer.from(text, "ascii")]);
}
