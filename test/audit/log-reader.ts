import { expect } from "chai";
import { z } from "zod";
import { auditEntry } from "../../src/contract/records.ts";
import type { World } from "../support/world.ts";

export type Entry = z.output<typeof auditEntry>;
export type Query = Readonly<Record<string, string>>;

/** The audit log as people read it, over the API. */
export class LogReader {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  list(query: Query = {}) {
    const { api, token } = this.#world;
    return api.ok("listAuditLog", 200, { token, query });
  }

  async newest(query: Query = {}): Promise<Entry> {
    const [entry] = (await this.list({ limit: "1", ...query })).entries;
    if (entry === undefined) throw new Error(`no entry for ${JSON.stringify(query)}`);
    return entry;
  }

  async exported(query: Query = {}): Promise<readonly Entry[]> {
    const { api, token } = this.#world;
    const answer = await api.call("exportAuditLog", { token, query });
    expect(answer.status).to.equal(200);
    expect(answer.headers.get("content-type")).to.equal("application/x-ndjson");
    expect(answer.headers.get("content-disposition")).to.match(/^attachment; filename="audit-log.jsonl"$/);
    const lines = z.string().parse(answer.body);
    expect(lines === "" || lines.endsWith("\n")).to.equal(true);
    return lines
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => auditEntry.parse(JSON.parse(line)));
  }
}
