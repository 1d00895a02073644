import type { Connected } from "../../src/identity/authenticator.ts";

/** Subject of grants and tokens: an agent by one of its keys, which the connection ends with. */
export const accountOf = ({ agentId, keyId }: Connected): string => `${agentId}/${keyId}`;

/** Null: it is no connection's. */
export function connectedOf(account: string | undefined): Connected | null {
  const [agentId, keyId, ...rest] = (account ?? "").split("/");
  return agentId && keyId && rest.length === 0 ? { agentId, keyId } : null;
}

export const keyIdIn = (account: string | undefined): string | null => connectedOf(account)?.keyId ?? null;
