import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { SMTPServer, type SMTPServerSession } from "smtp-server";
import { newAuthority } from "./certificates/authority.ts";
import { noteSecret } from "./secrets.ts";

/** A mail as the server took it. */
export interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  /** Headers and body, as they came. */
  readonly raw: string;
  readonly isEncrypted: boolean;
  /** Whom the sender signed in as. */
  readonly user: string | null;
}

/** A step at which the server may say no, by the code that it is given. */
export type Step = "recipient" | "message";

export interface MailServerOptions {
  /** `implicit`: from the first byte. By default STARTTLS is offered. */
  readonly tls?: "implicit" | "none";
  /** No client sends anything without signing in so. */
  readonly credentials?: { readonly user: string; readonly pass: string };
  /** On every interface, so that it is reached by an address that is not called loopback, too. */
  readonly host?: string;
  /** Names and addresses in its certificate. */
  readonly names?: readonly string[];
}

/** A real SMTP server on this machine, with a certificate authority of its own. */
export interface MailServer {
  readonly port: number;
  /** A file with its authority, until it is closed. */
  readonly caFile: string;
  readonly caPem: string;
  /** What it took, oldest first. */
  readonly mails: readonly ReceivedMail[];
  /** How often a client named a recipient, taken or not. */
  readonly asked: number;
  /** How often a client sent a password. */
  readonly signIns: number;
  /** From now on it answers so at that step; null: it takes all. The function is told the recipient. An enhanced status code goes with it. */
  answer(code: ((step: Step, to: string) => number | null) | null, enhanced?: string): void;
  close(): Promise<void>;
}

const takesAll = (): null => null;

export async function startMailServer(options: MailServerOptions = {}): Promise<MailServer> {
  const authority = newAuthority();
  const identity = authority.issue(options.names ?? ["localhost", "127.0.0.1"]);
  const folder = await mkdtemp(join(tmpdir(), "spending-control-mail-"));
  const caFile = join(folder, "ca.pem");
  await writeFile(caFile, authority.caPem);
  const mails: ReceivedMail[] = [];
  let [asked, signIns] = [0, 0];
  let code: (step: Step, to: string) => number | null = takesAll;
  let prefix = "";
  const refusedAt = (step: Step, to: string): Error | null => {
    const responseCode = code(step, to);
    // As servers do: the answer repeats the address.
    return responseCode === null
      ? null
      : Object.assign(new Error(`${prefix}no mail for <${to}> now`), { responseCode });
  };
  const take = async (stream: Readable, session: SMTPServerSession): Promise<Error | null> => {
    const mail = mailOf(session, await text(stream));
    const no = refusedAt("message", mail.to[0] ?? "");
    if (no === null) mails.push(mail);
    return no;
  };
  const { credentials } = options;
  const server = new SMTPServer({
    ...identity,
    secure: options.tls === "implicit",
    disabledCommands: options.tls === "none" ? ["STARTTLS"] : [],
    authOptional: credentials === undefined,
    allowInsecureAuth: true,
    disableReverseLookup: true,
    logger: false,
    onAuth({ password, username }, _session, answer) {
      signIns += 1;
      const isGood = username === credentials?.user && password === credentials?.pass;
      answer(
        isGood ? null : new Error("these are not the credentials"),
        isGood ? { user: username } : undefined,
      );
    },
    onRcptTo({ address }, _session, answer) {
      asked += 1;
      answer(refusedAt("recipient", address));
    },
    onData(stream, session, answer) {
      void take(stream, session).then(answer, answer);
    },
  });
  // A client that is refused breaks the line off, or its handshake fails: that is no failure of the server's.
  server.on("error", () => undefined);
  server.listen(0, options.host ?? "127.0.0.1");
  await once(server.server, "listening");
  const address = server.server.address();
  if (address === null || typeof address === "string") throw new Error("the mail server has no port");
  const { port } = address;
  return {
    port,
    caFile,
    caPem: authority.caPem,
    mails,
    get asked() {
      return asked;
    },
    get signIns() {
      return signIns;
    },
    answer(next, enhanced) {
      code = next ?? takesAll;
      prefix = enhanced === undefined ? "" : `${enhanced} `;
    },
    async close() {
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const mailOf = ({ envelope, secure, user }: SMTPServerSession, raw: string): ReceivedMail => ({
  from: envelope.mailFrom === false ? "" : envelope.mailFrom.address,
  to: envelope.rcptTo.map(({ address }) => address),
  raw,
  isEncrypted: secure,
  user: user ?? null,
});

/** A mail's headers, unfolded, by their names in lower case, and its text. */
export interface ReadMail {
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly text: string;
}

export function readMail({ raw }: Pick<ReceivedMail, "raw">): ReadMail {
  const end = raw.indexOf("\r\n\r\n");
  const headers = new Map<string, string[]>();
  for (const line of raw
    .slice(0, end)
    .replaceAll(/\r\n[ \t]+/g, " ")
    .split("\r\n")) {
    const name = line.slice(0, line.indexOf(":")).toLowerCase();
    headers.set(name, [...(headers.get(name) ?? []), line.slice(line.indexOf(":") + 1).trim()]);
  }
  const encoding = headers.get("content-transfer-encoding")?.[0] ?? "7bit";
  return { headers, text: decoded(encoding, raw.slice(end + 4)) };
}

function decoded(encoding: string, body: string): string {
  if (encoding === "base64") return Buffer.from(body, "base64").toString("utf8");
  if (encoding !== "quoted-printable") return body;
  const bytes = body
    .replaceAll(/=\r\n/g, "")
    .replaceAll(/=([0-9A-F]{2})/g, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, "latin1").toString("utf8");
}

/** The token of the one link in a mail; the run's files and logs are searched for it. */
export function tokenIn(mail: ReceivedMail): string {
  const [token, ...others] = [...readMail(mail).text.matchAll(/\/invite#token=([\w-]+)/g)].map(
    ([, each = ""]) => each,
  );
  if (token === undefined || others.length > 0) throw new Error("a mail has one link");
  noteSecret(token);
  return token;
}
