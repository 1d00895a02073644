import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { EVENT_TYPES } from "../../src/domain/events.ts";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { signatureHeaders } from "../../src/webhooks/signature.ts";
import { svcSignature, verifyWebhook } from "../../src/webhooks/verify-webhook.ts";

const run = promisify(execFile);
/** Go compiles net/http, once on each machine. */
const RUN_MS = 300_000;
const SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER_SECRET = "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";
const ID = "dlv_01K2ZV3M7Q8W9X0Y1Z2A3B4C5D";
const TYPE = "agent.paused";
const BODY = JSON.stringify({
  id: ID,
  type: TYPE,
  created_at: "2027-01-15T08:00:00.123Z",
  org_id: "01a1fedc-b36f-716a-9ab4-93fd85fe3901",
  agent_name: "Käufer €🛒",
  data: { agent: {} },
});

interface Delivery {
  readonly what: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly genuine: boolean;
}

/** What a run of a snippet is made of, beside the snippet itself. */
interface Receiver {
  readonly files: Readonly<Record<string, string>>;
  readonly before?: readonly string[];
  readonly command: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** Reads the page on webhooks, or one of its examples. */
const pageText = (name = "webhooks.md"): Promise<string> =>
  readFile(join(PACKAGE_ROOT, "docs", name), "utf8");

/** The page's snippets in a language. */
async function snippets(language: string): Promise<string[]> {
  return [...(await pageText()).matchAll(/^```(\w+)\n([^]*?)^```$/gm)]
    .filter(([, each]) => each === language)
    .map(([, , text]) => text ?? "");
}

/** Genuine deliveries, and others, each altered in one way. Signed now: the receivers look at their own clocks. */
function deliveries(): Delivery[] {
  const signed = ({ body = BODY, laterBySeconds = 0, secrets = [SECRET] }) =>
    signatureHeaders({
      deliveryId: ID,
      eventType: TYPE,
      body,
      at: new Date(Date.now() + laterBySeconds * 1_000),
      secrets,
    });
  const genuine = (what: string, headers: Record<string, string>, body = BODY): Delivery => ({
    what,
    headers,
    body,
    genuine: true,
  });
  const altered = (what: string, headers: Record<string, string>, body = BODY): Delivery => ({
    ...genuine(what, headers, body),
    genuine: false,
  });
  /** Alters a header, and the one with which Standard Webhooks says the same. */
  const changed = (svc: string, standard: string, change: (value: string) => string) => {
    const headers = signed({});
    return { ...headers, [svc]: change(headers[svc] ?? ""), [standard]: change(headers[standard] ?? "") };
  };
  const timestamp = (change: (value: string) => string) =>
    changed("Svc-Timestamp", "webhook-timestamp", change);
  const signature = (change: (value: string) => string) =>
    changed("Svc-Signature", "webhook-signature", change);
  return [
    genuine("signed once", signed({})),
    genuine("a minute old", signed({ laterBySeconds: -60 })),
    genuine("a rotation, the secret still the old one", signed({ secrets: [OTHER_SECRET, SECRET] })),
    genuine("a rotation, the secret already the new one", signed({ secrets: [SECRET, OTHER_SECRET] })),
    altered("another secret", signed({ secrets: [OTHER_SECRET] })),
    altered("two other secrets", signed({ secrets: [OTHER_SECRET, `${OTHER_SECRET.slice(0, -4)}AAA=`] })),
    altered("another body", signed({}), BODY.replace("paused", "resumed")),
    altered("a longer body", signed({}), `${BODY} `),
    altered("no body", signed({}), ""),
    altered("ten minutes old", signed({ laterBySeconds: -600 })),
    altered("ten minutes early", signed({ laterBySeconds: 600 })),
    altered(
      "another second",
      timestamp((value) => String(Number(value) - 1)),
    ),
    altered(
      "milliseconds",
      timestamp((value) => `${value}000`),
    ),
    altered(
      "no timestamp",
      timestamp(() => ""),
    ),
    altered(
      "no number",
      timestamp(() => "now"),
    ),
    altered(
      "no signature",
      signature(() => ""),
    ),
    altered(
      "half a signature",
      signature((value) => value.slice(0, 30)),
    ),
    altered(
      "no scheme",
      signature((value) => value.replace(/^(sha256=|v1,)/, "")),
    ),
    altered(
      "another scheme",
      signature((value) => value.replace(/^(sha256|v1)/, "v0")),
    ),
    altered(
      "another id",
      changed("Svc-Delivery-Id", "webhook-id", () => "dlv_other"),
    ),
  ];
}

/** Hands the deliveries to a receiver in its own folder, and gives what it said to each. */
async function verdicts(receiver: Receiver, given: readonly Delivery[], secret: string): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), "webhook-receiver-"));
  try {
    for (const [file, text] of Object.entries(receiver.files)) {
      await mkdir(dirname(join(folder, file)), { recursive: true });
      await writeFile(join(folder, file), text);
    }
    // What npm would install there.
    await mkdir(join(folder, "node_modules"));
    await symlink(PACKAGE_ROOT, join(folder, "node_modules", "agent-spending-control"));
    for (const name of ["express", "standardwebhooks", "@types"])
      await symlink(join(PACKAGE_ROOT, "node_modules", name), join(folder, "node_modules", name));
    const options = { cwd: folder, env: { ...process.env, WEBHOOK_SECRET: secret, ...receiver.env } };
    for (const args of [receiver.before ?? [], receiver.command]) {
      const [program, ...rest] = args;
      if (program === undefined) continue;
      const running = run(program, rest, options);
      running.child.stdin?.end(JSON.stringify({ deliveries: given, secret }));
      const { stdout } = await running;
      if (args === receiver.command) return stdout.trim().split("\n");
    }
    return [];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function expectAllJudged(receiver: Receiver, also: readonly Delivery[] = []): Promise<void> {
  const given = [...deliveries(), ...also];
  const said = await verdicts(receiver, given, SECRET);
  expect(given.map(({ what }, index) => `${what}: ${said[index] ?? "nothing"}`)).to.deep.equal(
    given.map(({ genuine, what }) => `${what}: ${genuine ? "accepted" : "refused"}`),
  );
}

/** For receivers that look at this header: libraries of Standard Webhooks don't know it. */
function ofAnotherType(): Delivery {
  const headers = signatureHeaders({
    deliveryId: ID,
    eventType: "agent.resumed",
    body: BODY,
    at: new Date(),
    secrets: [SECRET],
  });
  return { what: "another type", headers, body: BODY, genuine: false };
}

/** Marks the test as pending where a program is not there, and says so. */
async function needs(context: Mocha.Context, program: string, ...args: readonly string[]): Promise<void> {
  const isThere = await run(program, args).then(
    () => true,
    () => false,
  );
  if (isThere) return;
  process.stdout.write(`    pending: there is no ${program} on PATH to run the page's snippet with\n`);
  context.skip();
}

const COMPILER_OPTIONS = "--module nodenext --target es2023 --lib es2023 --types node --strict".split(" ");

const typescript = (snippet: string, driver: string): Receiver => ({
  files: { "package.json": '{"type":"module"}', "receiver.ts": snippet, "driver.js": driver },
  before: [
    process.execPath,
    join(PACKAGE_ROOT, "node_modules", "typescript", "bin", "tsc"),
    ...COMPILER_OPTIONS,
    "receiver.ts",
  ],
  command: [process.execPath, "driver.js"],
});

const READ = `
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  const { deliveries } = JSON.parse(Buffer.concat(chunks).toString());`;

const OVER_HTTP = `import { app } from "./receiver.js";
  ${READ}
  console.log = () => {};
  const server = app.listen(0, "127.0.0.1", async () => {
    for (const { body, headers } of deliveries) {
      const url = \`http://127.0.0.1:\${server.address().port}/hooks\`;
      const all = { ...headers, "content-type": "application/json" };
      const { status } = await fetch(url, { method: "POST", headers: all, body });
      process.stdout.write({ 204: "accepted\\n", 400: "refused\\n" }[status] ?? \`status \${status}\\n\`);
    }
    server.close();
    server.closeAllConnections();
  });`;

const BY_CALL = `import { verify } from "./receiver.js";
  ${READ}
  for (const { body, headers } of deliveries) {
    try {
      console.log(verify(body, headers)?.id === "${ID}" ? "accepted" : "refused");
    } catch (error) {
      console.log(error.name === "WebhookVerificationError" ? "refused" : String(error));
    }
  }`;

const PYTHON = `import json, sys
from email.message import Message
from receiver import verify
given = json.loads(sys.stdin.buffer.read())
for delivery in given["deliveries"]:
    headers = Message()
    for name, value in delivery["headers"].items():
        headers[name.lower()] = value
    try:
        event = verify(given["secret"], headers, delivery["body"].encode())
        print("accepted" if event["id"] == "${ID}" else "another event")
    except ValueError:
        print("refused")
`;

const GO = `package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"receiver/webhooks"
)

func main() {
	var given struct {
		Secret     string
		Deliveries []struct {
			Headers map[string]string
			Body    string
		}
	}
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		panic(err)
	}
	for _, delivery := range given.Deliveries {
		header := http.Header{}
		for name, value := range delivery.Headers {
			header.Set(name, value)
		}
		event, err := webhooks.Verify(given.Secret, header, []byte(delivery.Body))
		if err != nil {
			fmt.Println("refused")
		} else if event.ID == "${ID}" {
			fmt.Println("accepted")
		} else {
			fmt.Println("another event")
		}
	}
}
`;

async function inPython(): Promise<Receiver> {
  const snippet = await pageText("examples/verify_webhook.py");
  return { files: { "receiver.py": snippet, "driver.py": PYTHON }, command: ["python3", "driver.py"] };
}

async function inGo(): Promise<Receiver> {
  const snippet = await pageText("examples/verify_webhook.go");
  // What Go builds is run from there, which where the run's folder lies in memory is often forbidden.
  const builtIn = join(PACKAGE_ROOT, ".test", "go");
  await mkdir(builtIn, { recursive: true });
  return {
    files: {
      "go.mod": "module receiver\n\ngo 1.18\n",
      "webhooks/verify.go": snippet,
      "main.go": GO,
    },
    command: ["go", "run", "."],
    env: { GOTMPDIR: builtIn, GOPROXY: "off", GOTOOLCHAIN: "local", GOWORK: "off" },
  };
}

describe("the pages on webhooks", () => {
  it("names every type of event, and no other", async () => {
    const page = await pageText();
    const [, table = ""] = /\| event +\|[^\n]*\n\|[-| ]+\|\n((?:\|[^\n]*\n)+)/.exec(page) ?? [];
    const cells = [...table.matchAll(/^\|([^|]+)\|/gm)].map(([, cell = ""]) => cell).join();
    const named = [...cells.matchAll(/`([^`]+)`/g)].map(([, name]) => name);
    expect(named).to.deep.equal(EVENT_TYPES);
  });

  it("shows a body that is an event", async () => {
    const [rawBody = "", ...more] = await snippets("json");
    expect(more).to.deep.equal([]);
    const event: { id: string; type: string } = JSON.parse(rawBody);
    const at = new Date();
    const headers = signatureHeaders({
      deliveryId: event.id,
      eventType: event.type,
      body: rawBody,
      at,
      secrets: [SECRET],
    });
    expect(verifyWebhook({ rawBody, headers, secret: SECRET })).to.deep.equal({ ok: true, event });
  });

  it("has no program that is not run here", async () => {
    const page = await pageText();
    const languages = [...page.matchAll(/^```(\w+)$/gm)].map(([, language]) => language);
    expect(languages).to.deep.equal(["json", "ts", "ts"]);
  });
});

describe("a receiver as the page shows it", function () {
  this.timeout(RUN_MS);

  it("in TypeScript with our function accepts what is genuine and refuses the rest", async () => {
    const [snippet = ""] = await snippets("ts");
    await expectAllJudged(typescript(snippet, OVER_HTTP), [ofAnotherType()]);
  });

  it("in TypeScript with standardwebhooks accepts what is genuine and refuses the rest", async () => {
    const [, snippet = ""] = await snippets("ts");
    await expectAllJudged(typescript(snippet, BY_CALL));
  });

  it("in Python accepts what is genuine and refuses the rest", async function () {
    await needs(this, "python3", "--version");
    await expectAllJudged(await inPython(), [ofAnotherType()]);
  });

  it("in Go accepts what is genuine and refuses the rest", async function () {
    await needs(this, "go", "version");
    await expectAllJudged(await inGo(), [ofAnotherType()]);
  });

  for (const [language, program, receiver] of [
    ["Python", "python3", inPython],
    ["Go", "go", inGo],
  ] as const) {
    it(`in ${language} accepts nothing while no secret is set`, async function () {
      await needs(this, program, program === "go" ? "version" : "--version");
      const timestamp = String(Math.floor(Date.now() / 1_000));
      const headers = {
        "Svc-Signature": svcSignature("", timestamp, BODY),
        "Svc-Timestamp": timestamp,
        "Svc-Event-Type": TYPE,
        "Svc-Delivery-Id": ID,
      };
      const delivery: Delivery = { what: "forged", headers, body: BODY, genuine: false };
      expect(await verdicts(await receiver(), [delivery], "")).to.deep.equal(["refused"]);
    });
  }
});
