import { z } from "zod";
import { ask, Browser } from "../test/support/oauth.ts";

/** An agent that becomes the client, with the key that the client takes the place of. */
export const connectable = z.object({ id: z.string(), key: z.object({ id: z.string() }) });

const connected = z.object({ redirectTo: z.string() });

/**
 * Consents, in a browser, to the authorization request at `url` as a person with an elevated session. Returns the address at which the
 * client is told.
 */
export async function consentTo(
  url: string,
  origin: string,
  token: string,
  agent: z.output<typeof connectable>,
): Promise<string> {
  const browser = new Browser();
  const connectionId = await ask(browser, new URL(url));
  const cookie = browser.cookiesFor("/v1/agents");
  const response = await fetch(`${origin}/v1/agents/${agent.id}/connection`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}`, cookie },
    body: JSON.stringify({ connectionId, revokeKeyId: agent.key.id }),
  });
  if (!response.ok) throw new Error(`consent: ${String(response.status)} ${await response.text()}`);
  const { redirectTo } = connected.parse(await response.json());
  return (await browser.get(redirectTo)).headers.get("location") ?? "";
}
