import { z } from "zod";
import { madePayment, payment } from "../../src/contract/records.ts";
import { ALL_PAYMENT_TOOLS } from "../../src/contract/rails.ts";
import { type OperationId, operationList } from "../../src/contract/registry.ts";
import type { Refusal } from "../../src/domain/errors.ts";
import { type Toolset, structured, type ToolResult } from "./toolset.ts";

/** Tasks extension of the protocol: a call may return a handle, which the caller polls until there is a result. */
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

const POLL_INTERVAL_MS = 5_000;

/** A payment on hold as a task, whose id is the transaction's. */
export interface Task {
  readonly taskId: string;
  readonly status: "working" | "completed" | "cancelled";
  readonly statusMessage?: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  readonly ttlMs: number;
  readonly pollIntervalMs: number;
}

export interface DetailedTask extends Task {
  readonly result?: ToolResult;
}

export const taskParams = z.looseObject({ taskId: z.string().max(100) });

/** Tools whose result may be a task. Reads of a payment are answered at once. */
const PAYING: ReadonlySet<string> = new Set(ALL_PAYMENT_TOOLS);

/** Operations whose callers may ask about a payment on hold: those that read payments and those that make them. */
const PAYMENT_READERS: readonly OperationId[] = [
  "getPayment",
  ...operationList.filter(([, { tool }]) => PAYING.has(tool?.name ?? "")).map(([id]) => id),
];

/** Returns the task of a payment that waits for a person's decision; null if the result is the final answer. */
export function taskFor(tool: string, { isError, structuredContent }: ToolResult): Task | null {
  if (!PAYING.has(tool) || isError === true) return null;
  const made = madePayment.safeParse(structuredContent);
  if (!made.success || made.data.approvalUrl === null) return null;
  return taskOf(made.data);
}

/** Returns a task's outcome; null if the caller has no such task or may not read it. */
export async function readTask(toolset: Toolset, taskId: string): Promise<DetailedTask | null> {
  if (!PAYMENT_READERS.some((id) => toolset.may(id))) return null;
  const read = await toolset.handle("getPayment", { params: { id: taskId }, query: {}, body: undefined });
  if (!read.ok) return onlyUnknown(read.refusal);
  const found = payment.parse(read.value);
  const task = taskOf(found);
  return task?.status === "completed" ? { ...task, result: structured(found) } : task;
}

/** Cancels a payment that is still on hold. Returns whether the caller has such a task. */
export async function cancelTask(toolset: Toolset, taskId: string): Promise<boolean> {
  const task = await readTask(toolset, taskId);
  if (task === null) return false;
  if (task.status !== "working" || !toolset.may("cancelPayment")) return true;
  const cancelled = await toolset.handle("cancelPayment", {
    params: { id: taskId },
    query: {},
    body: undefined,
  });
  if (!cancelled.ok && cancelled.refusal.code !== "PAYMENT_NOT_CANCELLABLE") onlyUnknown(cancelled.refusal);
  return true;
}

/** The task's state is temporarily unavailable. This is a protocol error, since a task cannot express it. */
export class TaskUnavailable extends Error {
  override readonly name = "TaskUnavailable";
}

function onlyUnknown({ code, message }: Refusal): null {
  if (code === "NOT_FOUND" || code === "VALIDATION_FAILED") return null;
  throw new TaskUnavailable(message);
}

/** Returns the payment's task; null if the payment never was on hold. */
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
