import type { Connected } from "../../src/identity/authenticator.ts";

/** Subject of grants and tokens: an agent and the key whose revocation ends the connection. */
export const accountOf = ({ agentId, keyId }: Connected): string => `${agentId}/${keyId}`;

/** Parses the subject; null if it is not a connection's. */
export function connectedOf(account: string | undefined): Connected | null {
  const [agentId, keyId, ...rest] = (account ?? "").split("/");
  return agentId && keyId && rest.length === 0 ? { agentId, keyId } : null;
}

export const keyIdIn = (account: string | undefined): string | null => connectedOf(account)?.keyId ?? null;
