import type { FirstKey } from "../../../src/domain/agent/access.ts";
import type { AgentProfile } from "../../../src/domain/agent/state.ts";
import { KeyModel } from "./key-model.ts";

/** The life of an agent: its name, its keys, its end. */
export class AgentModel {
  readonly agentId: string;
  readonly keys: KeyModel;
  name: string;
  archivedAt: number | null = null;
  isDetached = false;
  /** Of its record, and what the record of this revision shows. */
  revision = 0;
  record = "";
  /** Keys of which clients were answered that they are dead. */
  readonly deadKeys = new Set<string>();
  /** Whether who archived it was answered. */
  isArchiveAnswered = false;
  /** Whether who paused it was answered, at this turn of its account. */
  pausedAtSequence: number | null = null;

  constructor({ agentId, name }: AgentProfile, firstKey: FirstKey) {
    this.agentId = agentId;
    this.name = name;
    this.keys = new KeyModel(firstKey);
  }
}
