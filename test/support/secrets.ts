import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { classifyApiKey } from "../../src/domain/api-key.ts";
import { hasCheckDigit, SIMULATED_BIN } from "../../src/engines/card-network/card-data.ts";

/**
 * No raw key, password, TOTP secret or token may lie in the databases' files or in a log. Tests note what they were
 * given or chose; what is recognizable by its form is found without having been noted.
 */
const noted = (): string | undefined => process.env["TEST_SECRETS_FILE"];

/** What an answer tells that is secret, and what people choose. What a test makes up as a token is none. */
const GIVEN = new Set(["apiKey", "deviceToken", "ephemeralKey", "key", "refreshToken", "secret", "token"]);
const CHOSEN = new Set(["apiKey", "authorizationSecret", "password"]);
const SECRET_MIN_CHARACTERS = 12;

/** Notes every secret that an answer carries, however deep. */
export const noteSecretsGiven = (answer: unknown): void => noteFields(answer, GIVEN);

/** Notes the passwords and the issuer's keys of a request. */
export const noteSecretsChosen = (request: unknown): void => noteFields(request, CHOSEN);

function noteFields(value: unknown, names: ReadonlySet<string>): void {
  if (typeof value !== "object" || value === null) return;
  for (const [name, field] of Object.entries(value)) {
    if (typeof field === "string" && names.has(name)) noteSecret(field);
    else noteFields(field, names);
  }
}

export function noteSecret(value: string): void {
  const file = noted();
  if (file !== undefined && value.length >= SECRET_MIN_CHARACTERS)
    appendFileSync(file, `${JSON.stringify(value)}\n`);
}

export function notedSecrets(): ReadonlySet<string> {
  const file = noted();
  if (file === undefined || !existsSync(file)) return new Set();
  const lines = readFileSync(file, "utf8").split("\n");
  return new Set(lines.filter((line) => line !== "").map((line) => String(JSON.parse(line))));
}

/** A secret that was found, without showing it. */
export interface Leak {
  readonly file: string;
  readonly what: string;
}

export interface Scan {
  readonly leaks: readonly Leak[];
  readonly fileCount: number;
  readonly sizeBytes: number;
  /** Which of the planted values were found: a scan that finds none of them proves nothing. */
  readonly planted: ReadonlySet<string>;
}

const CHUNK_BYTES = 1024 * 1024;
const NOTHING = Buffer.alloc(CHUNK_BYTES);
/** Longer than any secret, so that none hides between two chunks. */
const OVERLAP_BYTES = 8 * 1024;

/** What a secret looks like, and a part that all of its form have: where that is missing, the form is not looked for. */
const FORMS = {
  key: { part: "_live_", form: /s(?:k_svc|vc_org)_live_[0-9A-Za-z]{46}/g },
  jwt: { part: "eyJ", form: /eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{80,}/g },
  /** It begins where it is told apart best, and is looked at backwards from there. */
  refreshToken: {
    part: ".",
    form: /(?<=[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.[\w-]{43}\.[\w-]{43}/g,
  },
  /** What deliveries of webhooks are signed with. */
  webhookSecret: { part: "whsec_", form: /whsec_[A-Za-z0-9+/]{40,}={0,2}/g },
  /** Keys of an issuer's account, and those by which a browser sees a card. */
  issuerKey: { part: "k_test_", form: /\b[ers]k_test_\w{8,}/g },
  cardNumber: { part: SIMULATED_BIN, form: new RegExp(`${SIMULATED_BIN}\\d{8}`, "g") },
  cardCode: { part: "cvc", form: /\bcvc\W{1,4}\d{3}\b/g },
} as const;

type Form = (typeof FORMS)[keyof typeof FORMS];

const matchesIn =
  (searched: Buffer | string, text: string) =>
  ({ form, part }: Form): readonly string[] =>
    searched.includes(part) ? (text.match(form) ?? []) : [];

/** Data of cards and keys of their issuers, which no answer may carry either. */
const cardLeaks = (matches: ReturnType<typeof matchesIn>): readonly string[] => [
  ...matches(FORMS.issuerKey).map((key) => `a card issuer's key …${key.slice(-4)}`),
  ...matches(FORMS.cardNumber)
    .filter(hasCheckDigit)
    .map((number) => `a card's number …${number.slice(-4)}`),
  ...matches(FORMS.cardCode).map(() => "a card's code"),
];

/** The field of `viewCard` whose key shows a card to the browser that asked. */
const EPHEMERAL_KEY = /"ephemeralKey":"[^"]*"/;

/** Fails for an answer of the service that has a card's number or code, or an issuer's key. */
export function expectNoCardData(answer: string): void {
  const text = answer.replace(EPHEMERAL_KEY, "");
  const leaks = cardLeaks(matchesIn(text, text));
  if (leaks.length > 0) throw new Error(`an answer has ${leaks.join(", ")}`);
}

/** Looks through every file below a folder. */
export async function scanForSecrets(
  folder: string,
  secrets: ReadonlySet<string> = notedSecrets(),
  planted: readonly string[] = [],
): Promise<Scan> {
  const leaks: Leak[] = [];
  const found = new Set<string>();
  let sizeBytes = 0;
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) =>
    entry.isFile(),
  );
  const search = searchFor(secrets, planted);
  for (const entry of files) {
    const file = join(entry.parentPath, entry.name);
    for await (const bytes of chunksOf(file)) {
      sizeBytes += bytes.length;
      const hits = search(bytes);
      leaks.push(...hits.leaks.map((what) => ({ file: file.slice(folder.length + 1), what })));
      for (const value of hits.planted) found.add(value);
    }
  }
  return { leaks, fileCount: files.length, sizeBytes, planted: found };
}

/** Buffers that no file is read into. */
const idle: Buffer[] = [];

/** A file in overlapping chunks, without those that are all zeros. Each is good until the next is asked for. */
export async function* chunksOf(file: string): AsyncGenerator<Buffer> {
  const handle = await open(file);
  // There are thousands of small files.
  const buffer = idle.pop() ?? Buffer.alloc(CHUNK_BYTES);
  try {
    for (let position = 0; ; position += CHUNK_BYTES - OVERLAP_BYTES) {
      const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES, position);
      const bytes = buffer.subarray(0, bytesRead);
      // Databases lay files out ahead of what they write.
      if (!bytes.equals(NOTHING.subarray(0, bytesRead))) yield bytes;
      if (bytesRead < CHUNK_BYTES) return;
    }
  } finally {
    idle.push(buffer);
    await handle.close();
  }
}

const hasForm = (secret: string): boolean =>
  Object.values(FORMS).some(({ form }) => secret.search(form) >= 0);

function searchFor(secrets: ReadonlySet<string>, planted: readonly string[]) {
  const others = new LiteralSearch([...secrets].filter((secret) => !hasForm(secret)));
  const ofPlanted = new LiteralSearch(planted);
  return (bytes: Buffer) => {
    const text = bytes.toString("latin1");
    const matches = matchesIn(bytes, text);
    return {
      leaks: [
        ...matches(FORMS.key)
          .filter((key) => classifyApiKey(key) !== null)
          .map((key) => `a key …${key.slice(-4)}`),
        ...matches(FORMS.jwt).map(() => "a session token"),
        ...matches(FORMS.refreshToken).map(() => "a refresh token"),
        ...matches(FORMS.webhookSecret).map((secret) => `a webhook's secret …${secret.slice(-4)}`),
        ...cardLeaks(matches),
        ...others.in(bytes).map((secret) => `${kindOf(secret)} like ${secret.slice(0, 3)}…`),
      ],
      planted: ofPlanted.in(bytes),
    };
  };
}

const kindOf = (secret: string): string =>
  /^[A-Z2-7]{32}$/.test(secret) ? "a TOTP secret" : "a password or token";

const HASH_BITS = 16;
const SPREAD = 0x9e3779b1;
const hashOf = (fourBytes: number): number => Math.imul(fourBytes, SPREAD) >>> (32 - HASH_BITS);

/** Looks for thousands of values at once, each of four bytes at least, in one pass over what may hold them. */
class LiteralSearch {
  /** Whether any value ends with four bytes of this hash. Many begin alike, as ids do that begin with the time. */
  readonly #ends = new Uint8Array(2 ** HASH_BITS);
  readonly #byEnding = new Map<number, { readonly value: string; readonly bytes: Buffer }[]>();

  constructor(values: readonly string[]) {
    for (const value of values) {
      const bytes = Buffer.from(value, "utf8");
      const ending = bytes.readInt32LE(bytes.length - 4);
      this.#ends[hashOf(ending)] = 1;
      this.#byEnding.set(ending, [...(this.#byEnding.get(ending) ?? []), { value, bytes }]);
    }
  }

  /** Those that are there. */
  in(text: Buffer): readonly string[] {
    const found = new Set<string>();
    if (this.#byEnding.size === 0) return [];
    let lastFour = 0;
    for (let index = 0; index < text.length; index += 1) {
      lastFour = (lastFour >>> 8) | ((text[index] ?? 0) << 24);
      if (this.#ends[hashOf(lastFour)] === 0) continue;
      for (const { bytes, value } of this.#byEnding.get(lastFour) ?? []) {
        const start = index + 1 - bytes.length;
        if (start >= 0 && bytes.compare(text, start, index + 1) === 0) found.add(value);
      }
    }
    return [...found];
  }
}

/** Fails with what was found and where. */
export async function expectNoSecrets(folder: string): Promise<void> {
  const { leaks } = await scanForSecrets(folder);
  if (leaks.length > 0) throw new Error(`secrets in the clear: ${JSON.stringify(leaks.slice(0, 10))}`);
}
