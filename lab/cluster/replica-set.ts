import { randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Document, MongoClient } from "mongodb";
import { z } from "zod";
import { childEnvironment } from "../../src/engines/environment.ts";
import { LOOPBACK } from "../../src/engines/ports.ts";
import { untilNothingIsMissing } from "../chaos/until.ts";
import { Member } from "./member.ts";

const SET = "cluster";
const STATE_MS = 180_000;
const POLL_MS = 100;
const CALL_MS = 2_000;
const STOP_GRACE_MS = 15_000;
const STEPPED_DOWN_SECONDS = 30;
const CATCH_UP_SECONDS = 10;

const status = z.object({ members: z.array(z.object({ name: z.string(), stateStr: z.string() })) });

export interface ReplicaSetOptions {
  readonly binary: string;
  readonly dataDir: string;
  readonly ports: readonly number[];
  readonly env: NodeJS.ProcessEnv;
}

/** Members of a MongoDB replica set that asks for passwords, under supervisors. */
export class ReplicaSet {
  readonly #hosts: readonly string[];
  readonly #members: readonly Member[];
  readonly #folders: readonly string[];
  readonly #passwords = { root: secret(), service: secret() };

  private constructor(hosts: readonly string[], members: readonly Member[], folders: readonly string[]) {
    this.#hosts = hosts;
    this.#members = members;
    this.#folders = folders;
  }

  /** `database`: the one that the service's account may read and write, and nothing else. */
  static async start(options: ReplicaSetOptions, database: string): Promise<ReplicaSet> {
    const { binary, dataDir, env, ports } = options;
    const keyFile = join(dataDir, "mongodb.key");
    await writeFile(keyFile, randomBytes(48).toString("base64"), { mode: 0o600 });
    const members: Member[] = [];
    const folders: string[] = [];
    for (const port of ports) {
      const name = `mongod-${String(members.length + 1)}`;
      const dbpath = join(dataDir, name);
      await mkdir(dbpath);
      folders.push(dbpath);
      const args = [
        ["--dbpath", dbpath, "--bind_ip", LOOPBACK, "--port", String(port), "--nounixsocket"],
        ["--replSet", SET, "--keyFile", keyFile, "--oplogSize", "256"],
        ["--wiredTigerCacheSizeGB", "0.5", "--quiet"],
        ["--setParameter", "transactionLifetimeLimitSeconds=10"],
        ["--setParameter", "diagnosticDataCollectionEnabled=false"],
      ].flat();
      const member = new Member({
        name,
        binary,
        args,
        env: childEnvironment(env),
        logFile: join(dataDir, "logs", `${name}.log`),
        stopGraceMs: STOP_GRACE_MS,
        remedy: "See its log.",
        ready: (signal) => untilAnswers(`${LOOPBACK}:${String(port)}`, signal),
      });
      members.push(await member.start());
    }
    const set = new ReplicaSet(
      ports.map((port) => `${LOOPBACK}:${String(port)}`),
      members,
      folders,
    );
    await set.#initiate(database);
    return set;
  }

  async #initiate(database: string): Promise<void> {
    const [first = ""] = this.#hosts;
    const members = this.#hosts.map((host, _id) => ({ _id, host, priority: _id === 0 ? 2 : 1 }));
    await commandAt(`mongodb://${first}/?directConnection=true`, { replSetInitiate: { _id: SET, members } });
    // Until there is an account, the first member lets in whoever comes from its own machine.
    const { root, service } = this.#passwords;
    await untilNothingIsMissing("the set has a primary", STATE_MS, async () => {
      const account = { createUser: "root", pwd: root, roles: ["root"] };
      await commandAt(`mongodb://${first}/?directConnection=true`, account);
      return null;
    });
    const roles = [{ role: "readWrite", db: database }];
    await this.#command({ createUser: "service", pwd: service, roles });
    await this.secondaries(this.#hosts.length - 1);
  }

  /** Address of the whole set for an account. */
  uri(account: "root" | "service", database: string): string {
    const hosts = this.#hosts.join(",");
    const password = this.#passwords[account];
    return `mongodb://${account}:${password}@${hosts}/${database}?replicaSet=${SET}&authSource=admin`;
  }

  get pids(): readonly number[] {
    return this.#members.map(({ pid }) => pid);
  }

  get fatal(): string | null {
    return this.#members.map(({ fatal }) => fatal).find((fatal) => fatal !== null) ?? null;
  }

  /** The member that comes first in addresses. */
  get first(): Member {
    return memberAt(this.#members, 0);
  }

  async #command(command: Document): Promise<Document> {
    return commandAt(this.uri("root", "admin"), command);
  }

  async #inState(state: string): Promise<readonly number[]> {
    const { members } = status.parse(await this.#command({ replSetGetStatus: 1 }));
    const names = members.flatMap(({ name, stateStr }) => (stateStr === state ? [name] : []));
    return this.#hosts.flatMap((host, index) => (names.includes(host) ? [index] : []));
  }

  async secondaries(count: number): Promise<void> {
    await untilNothingIsMissing("the set is whole", STATE_MS, async () => {
      const found = await this.#inState("SECONDARY");
      return found.length >= count ? null : `${String(found.length)} secondaries`;
    });
  }

  async primary(): Promise<Member> {
    const [index = 0] = await this.#inState("PRIMARY");
    return memberAt(this.#members, index);
  }

  async stepDown(): Promise<void> {
    const bounds = { replSetStepDown: STEPPED_DOWN_SECONDS, secondaryCatchUpPeriodSecs: CATCH_UP_SECONDS };
    await this.#command(bounds);
    await this.secondaries(this.#hosts.length - 1);
  }

  async killPrimary(): Promise<void> {
    await (await this.primary()).killAndAwaitRestart();
    await this.secondaries(this.#hosts.length - 1);
  }

  /** Stops all members, the primary last; starts them again after the work on their folders, of which the first was the primary's. */
  async away(work: (folders: readonly string[]) => Promise<void>): Promise<void> {
    const primary = this.#members.indexOf(await this.primary());
    const others = [...this.#members.keys()].filter((index) => index !== primary);
    const order = [primary, ...others];
    for (const index of order.toReversed()) await memberAt(this.#members, index).stop();
    await work(order.map((index) => this.#folders[index] ?? ""));
    await Promise.all(this.#members.map((member) => member.start()));
    await this.secondaries(this.#hosts.length - 1);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.stop()));
  }
}

const secret = (): string => randomBytes(24).toString("hex");

function memberAt(members: readonly Member[], index: number): Member {
  const member = members[index];
  if (member === undefined) throw new Error("the set has no such member");
  return member;
}

async function commandAt(uri: string, command: Document): Promise<Document> {
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: CALL_MS, socketTimeoutMS: 10 * CALL_MS });
  try {
    return await client.db("admin").command(command);
  } finally {
    await client.close();
  }
}

async function untilAnswers(host: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const hello = commandAt(`mongodb://${host}/?directConnection=true`, { hello: 1 });
    if ((await hello.catch(() => null)) !== null) return;
    await sleep(POLL_MS);
  }
  throw new Error("it never answered");
}
