import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { inspect } from "node:util";
import { Collection } from "mongodb";
import {
  PURCHASE_POINTS_FOLDER,
  purchaseHeldLine,
  type PurchasePoint,
  purchasePoint,
} from "../support/purchase-points.ts";

/** Holds an agent's purchase before or after one of its writes to MongoDB; it goes on no more. */

const folder = process.env[PURCHASE_POINTS_FOLDER] ?? "";

const WRITES = ["findOneAndUpdate", "insertOne", "replaceOne", "updateOne"] as const;
/** Deep enough for the fields of a document in an update. */
const DEPTH = 6;

/** Writes of armed agents so far, and the transactions that they made. */
const passed = new Map<string, number>();
const transactionsOf = new Map<string, Set<string>>();
const held = new Set<string>();

const never = (): Promise<never> => new Promise(() => undefined);

function armed(): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** The armed agent that a write is for. */
function agentOf(args: readonly unknown[]): string | null {
  const agents = armed();
  if (agents.length === 0) return null;
  const text = inspect(args.slice(0, 2), { depth: DEPTH });
  const named = agents.find((agentId) => text.includes(agentId));
  if (named === undefined)
    return (
      agents.find((id) => [...(transactionsOf.get(id) ?? [])].some((each) => text.includes(each))) ?? null
    );
  const known = transactionsOf.get(named) ?? new Set<string>();
  for (const id of text.match(/txn_\w+/g) ?? []) known.add(id);
  transactionsOf.set(named, known);
  return named;
}

const pointOf = (agentId: string): PurchasePoint =>
  purchasePoint.parse(JSON.parse(readFileSync(join(folder, agentId), "utf8")));

/** From now on each write of this process passes the armed points. */
export function holdPurchases(): void {
  for (const name of WRITES) {
    const plain = Reflect.get(Collection.prototype, name) as (
      ...args: readonly unknown[]
    ) => Promise<unknown>;
    Reflect.set(Collection.prototype, name, async function (this: Collection, ...args: readonly unknown[]) {
      const agentId = agentOf(args);
      if (agentId === null) return Reflect.apply(plain, this, args);
      if (held.has(agentId)) return never();
      const point = pointOf(agentId);
      if ((point.collection ?? this.collectionName) !== this.collectionName)
        return Reflect.apply(plain, this, args);
      const number = (passed.get(agentId) ?? 0) + 1;
      passed.set(agentId, number);
      if (number !== point.write) return Reflect.apply(plain, this, args);
      held.add(agentId);
      if (point.side === "after") await Reflect.apply(plain, this, args);
      process.stdout.write(`${purchaseHeldLine(agentId, point, `${this.collectionName}.${name}`)}\n`);
      return never();
    });
  }
}
