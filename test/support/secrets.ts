import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { classifyApiKey } from "../../src/domain/api-key.ts";

/**
 * No raw key, password, TOTP secret or token may lie in the databases' files or in a log. Tests note what they were
 * given or chose; what is recognizable by its form is found without having been noted.
 */
const noted = (): string | undefined => process.env["TEST_SECRETS_FILE"];

/** What an answer tells that is secret, and what people choose. What a test makes up as a token is none. */
const GIVEN = new Set(["apiKey", "deviceToken", "key", "refreshToken", "secret", "token"]);
const CHOSEN = new Set(["password"]);
const SECRET_MIN_CHARACTERS = 12;

/** Notes every secret that an answer carries, however deep. */
export const noteSecretsGiven = (answer: unknown): void => noteFields(answer, GIVEN);

/** Notes the passwords of a request. */
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

const KEY = /s(?:k_svc|vc_org)_live_[0-9A-Za-z]{46}/g;
const JWT = /eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{80,}/g;
const REFRESH_TOKEN = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[\w-]{43}\.[\w-]{43}/g;
/** What deliveries of webhooks are signed with. */
const WEBHOOK_SECRET = /whsec_[A-Za-z0-9+/]{40,}={0,2}/g;
/** TOTP secrets and planted values are looked up among all runs of their alphabets. */
const BASE32 = /[A-Z2-7]{32,}/g;
const BASE32_LENGTH_CHARACTERS = 32;

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
    for await (const text of chunksOf(file)) {
      sizeBytes += text.length;
      const hits = search(text);
      leaks.push(...hits.leaks.map((what) => ({ file: file.slice(folder.length + 1), what })));
      for (const value of hits.planted) found.add(value);
    }
  }
  return { leaks, fileCount: files.length, sizeBytes, planted: found };
}

/** A file in overlapping chunks, one character a byte, without those that are all zeros. */
export async function* chunksOf(file: string): AsyncGenerator<string> {
  const handle = await open(file);
  try {
    const buffer = Buffer.alloc(CHUNK_BYTES);
    for (let position = 0; ; position += CHUNK_BYTES - OVERLAP_BYTES) {
      const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES, position);
      // Databases lay files out ahead of what they write.
      const isEmpty = buffer.subarray(0, bytesRead).equals(NOTHING.subarray(0, bytesRead));
      if (!isEmpty) yield buffer.toString("latin1", 0, bytesRead);
      if (bytesRead < CHUNK_BYTES) return;
    }
  } finally {
    await handle.close();
  }
}

function searchFor(secrets: ReadonlySet<string>, planted: readonly string[]) {
  const base32 = new Set([...secrets].filter((secret) => /^[A-Z2-7]{32}$/.test(secret)));
  // The rest has a form of its own, which is looked for, or is a password: few, so each is.
  const hasForm = (secret: string): boolean =>
    base32.has(secret) || [KEY, JWT, REFRESH_TOKEN, WEBHOOK_SECRET].some((form) => secret.search(form) >= 0);
  const others = [...secrets].filter((secret) => !hasForm(secret));
  return (text: string) => ({
    leaks: [
      ...(text.match(KEY) ?? [])
        .filter((key) => classifyApiKey(key) !== null)
        .map((key) => `a key …${key.slice(-4)}`),
      ...(text.match(JWT) ?? []).map(() => "a session token"),
      ...(text.match(REFRESH_TOKEN) ?? []).map(() => "a refresh token"),
      ...(text.match(WEBHOOK_SECRET) ?? []).map((secret) => `a webhook's secret …${secret.slice(-4)}`),
      ...(text.match(BASE32) ?? []).filter((run) => holdsOneOf(base32, run)).map(() => "a TOTP secret"),
      ...others
        .filter((secret) => text.includes(secret))
        .map((secret) => `a password or token like ${secret.slice(0, 3)}…`),
    ],
    planted: planted.filter((value) => text.includes(value)),
  });
}

function holdsOneOf(secrets: ReadonlySet<string>, run: string): boolean {
  for (let start = 0; start + BASE32_LENGTH_CHARACTERS <= run.length; start += 1) {
    if (secrets.has(run.slice(start, start + BASE32_LENGTH_CHARACTERS))) return true;
  }
  return false;
}

/** Fails with what was found and where. */
export async function expectNoSecrets(folder: string): Promise<void> {
  const { leaks } = await scanForSecrets(folder);
  if (leaks.length > 0) throw new Error(`secrets in the clear: ${JSON.stringify(leaks.slice(0, 10))}`);
}
