import { randomBytes } from "node:crypto";
import { connectMongo } from "../../server/connections.ts";
import { type Case, SPREAD_AGENTS } from "../cases.ts";
import { Child } from "../child.ts";
import type { AccountDocument, PlainConfig } from "../processes/plain.ts";
import type { Site, System } from "./system.ts";
import { BUDGET_CENTS, databaseOf, ORDER, portOf } from "./system.ts";

/** (c) What a user would write instead: a conditional update and a journaled insert. */
export async function startPlain(site: Site): Promise<System> {
  const mongodbUri = databaseOf(site.mongodbUri, "bench_plain");
  const config: PlainConfig = { mongodbUri };
  const { profileDir } = site;
  const child = await Child.start({ entry: "processes/plain.ts", config, profileDir });
  const { mongo, db } = await connectMongo(mongodbUri);
  const accounts = db.collection<AccountDocument>("accounts");
  const keys = Array.from({ length: SPREAD_AGENTS + 1 }, () => randomBytes(32).toString("hex"));
  const { hashKey } = await import("../processes/plain-key.ts");
  await accounts.insertMany(
    keys.map((key, index) => ({
      _id: `account-${String(index)}`,
      keyHash: hashKey(key),
      remainingCents: BUDGET_CENTS,
      spentCents: 0,
    })),
  );
  const hot = keys.slice(SPREAD_AGENTS);
  const spread = keys.slice(0, SPREAD_AGENTS);

  return {
    port: portOf(child.port),
    templates: (agents: Case["agents"]) =>
      Promise.resolve(
        (agents === "spread" ? spread : hot).map((key) => ({
          path: "/payments",
          headers: { authorization: `Bearer ${key}` },
          body: ORDER,
        })),
      ),
    settle: () => Promise.resolve(),
    course: () => Promise.resolve(null),
    async audit(answered) {
      const entries = await db.collection("entries").countDocuments();
      const [totals] = await accounts
        .aggregate<{ spent: number }>([{ $group: { _id: null, spent: { $sum: "$spentCents" } } }])
        .toArray();
      const spent = (totals?.spent ?? 0) / ORDER.amountCents;
      if (entries === answered && spent === answered) return [];
      return [`plain: ${String(answered)} answered, ${String(entries)} entries, ${String(spent)} spent`];
    },
    async stop() {
      await mongo.close();
      await child.stop();
    },
  };
}
