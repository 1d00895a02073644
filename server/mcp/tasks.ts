import { z } from "zod";
import { madePayment, payment } from "../../src/contract/records.ts";
import { ALL_PAYMENT_TOOLS } from "../../src/contract/rails.ts";
import { type OperationId, operationList } from "../../src/contract/registry.ts";
import type { Refusal } from "../../src/domain/errors.ts";
import { type Toolset, structured, type ToolResult } from "./toolset.ts";

/** The tasks extension of the protocol: a call's answer may be a handle, which its caller asks about until there is a result. */
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

const POLL_INTERVAL_MS = 5_000;

/** A held payment as a task: its id is the transaction's. */
export interface Task {
  readonly taskId: string;
  readonly status: "working" | "completed" | "cancelled";
  readonly statusMessage?: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  readonly ttlMs: number;
  readonly pollIntervalMs: number;
}

/** With its result, once there is one. */
export interface DetailedTask extends Task {
  readonly result?: ToolResult;
}

export const taskParams = z.looseObject({ taskId: z.string().max(100) });

/** The tools whose answer may be a task: reads of a payment are answered at once. */
const PAYING: ReadonlySet<string> = new Set(ALL_PAYMENT_TOOLS);

/** Who may ask about a held payment: who may read payments, and who may make them. */
const PAYMENT_READERS: readonly OperationId[] = [
  "getPayment",
  ...operationList.filter(([, { tool }]) => PAYING.has(tool?.name ?? "")).map(([id]) => id),
];

/** The task of a payment tool's result, when a person has still to decide; null: it is the answer itself. */
export function taskFor(tool: string, { isError, structuredContent }: ToolResult): Task | null {
  if (!PAYING.has(tool) || isError === true) return null;
  const made = madePayment.safeParse(structuredContent);
  if (!made.success || made.data.approvalUrl === null) return null;
  return taskOf(made.data);
}

/** The outcome of a task; null: the caller has none of that name, or may not read it. */
export async function readTask(toolset: Toolset, taskId: string): Promise<DetailedTask | null> {
  if (!PAYMENT_READERS.some((id) => toolset.may(id))) return null;
  const read = await toolset.outcomeOf("getPayment", { params: { id: taskId }, query: {}, body: undefined });
  if (!read.ok) return onlyUnknown(read.refusal);
  const found = payment.parse(read.value);
  const task = taskOf(found);
  return task?.status === "completed" ? { ...task, result: structured(found) } : task;
}

/** Takes the payment back, if it is still on hold. Whether the caller has such a task. */
export async function cancelTask(toolset: Toolset, taskId: string): Promise<boolean> {
  const task = await readTask(toolset, taskId);
  if (task === null) return false;
  if (task.status !== "working" || !toolset.may("cancelPayment")) return true;
  const cancelled = await toolset.outcomeOf("cancelPayment", {
    params: { id: taskId },
    query: {},
    body: undefined,
  });
  if (!cancelled.ok && cancelled.refusal.code !== "PAYMENT_NOT_CANCELLABLE") onlyUnknown(cancelled.refusal);
  return true;
}

/** For now it can't be said: an error of the protocol, since a task has no place for it. */
export class TaskUnavailable extends Error {
  override readonly name = "TaskUnavailable";
}

function onlyUnknown({ code, message }: Refusal): null {
  if (code === "NOT_FOUND" || code === "VALIDATION_FAILED") return null;
  throw new TaskUnavailable(message);
}

/** Null for a payment that never was on hold. */
function taskOf({ approval, approvalUrl, transaction }: z.output<typeof payment>): Task | null {
  if (approval === null) return null;
  const common = {
    taskId: transaction.id,
    createdAt: approval.createdAt,
    lastUpdatedAt: approval.resolvedAt ?? approval.createdAt,
    ttlMs: Date.parse(approval.expiresAt) - Date.parse(approval.createdAt),
    pollIntervalMs: POLL_INTERVAL_MS,
  };
  if (approvalUrl !== null) {
    const statusMessage = `A person decides until ${approval.expiresAt}: ${approvalUrl}`;
    return { ...common, status: "working", statusMessage };
  }
  if (transaction.status === "pending") {
    return { ...common, status: "working", statusMessage: "Approved, and on its way." };
  }
  return { ...common, status: transaction.denialCode === "CANCELLED_BY_AGENT" ? "cancelled" : "completed" };
}
