import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import type { Answer, Refused } from "../../src/client/types.ts";
import { sentenceOf } from "./api.ts";
import { signedOut } from "./session.tsx";
import { useStepUp } from "./step-up.tsx";

export interface Action<A extends readonly unknown[], T> {
  /** Answers the value of a success; null where it was refused, which `refused` says then, or given up. */
  readonly run: (...args: A) => Promise<T | null>;
  readonly isBusy: boolean;
  readonly refused: Refused | null;
  /** Text for a refusal that belongs to no field; empty if there is none. */
  readonly problem: string;
  readonly clear: () => void;
  /** Returns the problem of a field, by its path in the body. */
  readonly at: (path: string) => string | undefined;
}

export interface ActionOptions {
  /** Queries whose answers are old once it is done, by how their keys begin. */
  readonly stale?: readonly (readonly unknown[])[];
  /** Fields that show their own problems. */
  readonly fields?: readonly string[];
  /** Called besides showing the refusal. */
  readonly onRefused?: (refused: Refused) => void;
}

/** The fields of `to` that differ. A field that a form leaves out stays as it is, whoever has changed it since the form was opened. */
export function changesOf<T extends object>(from: T, to: T): Partial<T> {
  const changes: Partial<T> = {};
  for (const name in to)
    if (JSON.stringify(from[name]) !== JSON.stringify(to[name])) changes[name] = to[name];
  return changes;
}

/**
 * Something that a person does, once at a time: it asks for a second factor where the service does, and goes on afterwards; what it
 * has changed is read again.
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
