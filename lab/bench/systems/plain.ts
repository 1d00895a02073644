import { randomBytes } from "node:crypto";
import { connectMongo } from "../../../src/store/connections.ts";
import { type Case, SPREAD_AGENTS } from "../cases.ts";
import { Child } from "../child.ts";
import type { PlainConfig } from "../processes/plain.ts";
import { hashKey, type PlainStore, plainStore, PROJECT } from "../processes/plain-store.ts";
import { CAPPED_TEAMS } from "./caps.ts";
import type { Site, System } from "./system.ts";
import { BUDGET_CENTS, databaseOf, ORDER, portOf } from "./system.ts";

/** (c) What a user would write instead: a conditional update and a journaled insert. */
export const startPlain = (site: Site): Promise<System> => start(site, "bench_plain", false);

/** The rival under caps: limits of team and project in one transaction with the agent's. */
export const startPlainLevels = (site: Site): Promise<System> => start(site, "bench_plain_levels", true);

async function start(site: Site, name: string, hasLevels: boolean): Promise<System> {
  const mongodbUri = databaseOf(site.mongodbUri, name);
  const config: PlainConfig = { mongodbUri, hasLevels };
  const { profileDir } = site;
  const child = await Child.start({ entry: "processes/plain.ts", config, profileDir });
  const { mongo, db } = await connectMongo(mongodbUri);
  const store = plainStore(db);
  const keys = await openAccounts(store, SPREAD_AGENTS + 1);

  return {
    port: portOf(child.port),
    pid: child.pid,
    templates: (agents: Case["agents"]) =>
      Promise.resolve(
        (agents === "spread" ? keys.slice(0, SPREAD_AGENTS) : keys.slice(SPREAD_AGENTS)).map((key) => ({
          path: "/payments",
          headers: { authorization: `Bearer ${key}` },
          body: ORDER,
        })),
      ),
    settle: () => Promise.resolve(),
    course: () => Promise.resolve(null),
    audit: (answered) => audit(store, answered),
    async stop() {
      await mongo.close();
      await child.stop();
    },
  };
}

async function openAccounts({ accounts, levels }: PlainStore, count: number): Promise<string[]> {
  const keys = Array.from({ length: count }, () => randomBytes(32).toString("hex"));
  const room = { remainingCents: BUDGET_CENTS, spentCents: 0 };
  const teamIds = Array.from({ length: CAPPED_TEAMS }, (_none, index) => `team-${String(index)}`);
  await levels.insertMany([PROJECT, ...teamIds].map((_id) => ({ _id, ...room })));
  await accounts.insertMany(
    keys.map((key, index) => ({
      _id: `account-${String(index)}`,
      keyHash: hashKey(key),
      teamId: teamIds[index % teamIds.length] ?? "",
      ...room,
    })),
  );
  return keys;
}

async function audit({ accounts, entries }: PlainStore, answered: number): Promise<string[]> {
  const entered = await entries.countDocuments();
  const [totals] = await accounts
    .aggregate<{ spentCents: number }>([{ $group: { _id: null, spentCents: { $sum: "$spentCents" } } }])
    .toArray();
  const spent = (totals?.spentCents ?? 0) / ORDER.amountCents;
  if (entered === answered && spent === answered) return [];
  return [`plain: ${String(answered)} answered, ${String(entered)} entries, ${String(spent)} spent`];
}
