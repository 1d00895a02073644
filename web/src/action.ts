import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import type { Answer, Refused } from "../../src/client/types.ts";
import { sentenceOf } from "./api.ts";
import { signedOut } from "./session.tsx";
import { useStepUp } from "./step-up.tsx";

export interface Action<A extends readonly unknown[], T> {
  /** Returns the value of a success; null if the call was refused, which `refused` then shows, or given up. */
  readonly run: (...args: A) => Promise<T | null>;
  readonly isBusy: boolean;
  readonly refused: Refused | null;
  /** Text of a refusal that belongs to no field; empty if there is none. */
  readonly problem: string;
  readonly clear: () => void;
  /** Returns the problem of a field, by its path in the body. */
  readonly at: (path: string) => string | undefined;
}

export interface ActionOptions {
  /** Prefixes of the keys of queries that the call makes stale. */
  readonly stale?: readonly (readonly unknown[])[];
  /** Fields that show their own problems. */
  readonly fields?: readonly string[];
  /** Called in addition to showing the refusal. */
  readonly onRefused?: (refused: Refused) => void;
}

/**
 * Returns the fields of `to` that differ. A field that the form leaves out keeps its value, even if somebody has
 * changed it since the form was opened.
 */
export function changesOf<T extends object>(from: T, to: T): Partial<T> {
  const changes: Partial<T> = {};
  for (const name in to)
    if (JSON.stringify(from[name]) !== JSON.stringify(to[name])) changes[name] = to[name];
  return changes;
}

/**
 * An action of a person, one call at a time. Asks for a second factor if the service requires one, then continues.
 * Refetches what the action changed.
 */
export function useAction<A extends readonly unknown[], T>(
  call: (...args: A) => Promise<Answer<T>>,
  { fields = [], onRefused, stale = [] }: ActionOptions = {},
): Action<A, T> {
  const stepUp = useStepUp();
  const client = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const [refused, setRefused] = useState<Refused | null>(null);
  const running = useRef(false);

  const attempt = async (args: A): Promise<T | null> => {
    let answer = await call(...args);
    if (!answer.ok && answer.refused.code === "STEP_UP_REQUIRED") {
      if (!(await stepUp())) return null;
      answer = await call(...args);
    }
    if (answer.ok) {
      await Promise.all(stale.map((queryKey) => client.invalidateQueries({ queryKey })));
      return answer.value;
    }
    if (answer.refused.status === 401) signedOut(client);
    setRefused(answer.refused);
    onRefused?.(answer.refused);
    return null;
  };
  const run = async (...args: A): Promise<T | null> => {
    if (running.current) return null;
    running.current = true;
    setBusy(true);
    setRefused(null);
    try {
      return await attempt(args);
    } finally {
      running.current = false;
      setBusy(false);
    }
  };
  return {
    run,
    isBusy,
    refused,
    problem: refused === null ? "" : sentenceOf(refused, fields),
    clear: () => setRefused(null),
    at: (path) => refused?.issues.find((issue) => issue.path === path)?.message,
  };
}
