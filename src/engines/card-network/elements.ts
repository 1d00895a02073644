import { createHash, randomBytes } from "node:crypto";
import { z } from "zod";
import { CallRefused } from "./call-refused.ts";
import { cardDataOf } from "./card-data.ts";
import type { CardNetwork } from "./network.ts";
import type { Card, Stored } from "./shapes.ts";

const EPHEMERAL_KEY_SECONDS = 900;
const SECRET = /^ek_test_(acct_[0-9a-f]{16})_([0-9a-f]{48})$/;

/** A key by which one browser sees one card. */
interface EphemeralKey extends Stored {
  readonly object: "simulator.ephemeral_key";
  readonly cardId: string;
  readonly nonceDigest: string;
  readonly expires: number;
}

const digestOf = (secret: string): string => createHash("sha256").update(secret).digest("hex");

/** Creates a key for the browser that made the nonce; its secret is returned only once. */
export function makeEphemeralKey(network: CardNetwork, cardId: string, nonce: string) {
  network.get<Card>("issuing.card", cardId);
  const { created, id } = network.fresh("ephkey");
  const secret = `ek_test_${network.id}_${randomBytes(24).toString("hex")}`;
  const expires = created + EPHEMERAL_KEY_SECONDS;
  network.store.put<EphemeralKey>({
    id: `ephemeral_key/${digestOf(secret)}`,
    object: "simulator.ephemeral_key",
    created,
    cardId,
    nonceDigest: digestOf(nonce),
    expires,
  });
  return { id, created, object: "ephemeral_key", secret, expires };
}

const asked = z.object({ card: z.string(), key: z.string(), nonce: z.string() });

/** Returns number, code and expiry for a frame that has the card's key and nonce. */
export function revealedCard(body: string, networkOf: (accountId: string) => CardNetwork) {
  const { card, key, nonce } = asked.parse(JSON.parse(body));
  const [, accountId = ""] = SECRET.exec(key) ?? [];
  const network = accountId === "" ? null : networkOf(accountId);
  const id = `ephemeral_key/${digestOf(key)}`;
  const found = network?.store.get<EphemeralKey>("simulator.ephemeral_key", id) ?? null;
  const isGood =
    found !== null &&
    found.cardId === card &&
    found.nonceDigest === digestOf(nonce) &&
    found.expires > Date.now() / 1_000;
  if (!isGood) throw new CallRefused("The ephemeral key is invalid.", 401, "api_key_invalid");
  return cardDataOf(accountId, card);
}

export interface Served {
  readonly type: string;
  readonly text: string;
}

/** The part of Stripe.js that shows cards. Each element is a frame of the network's own origin. */
const SCRIPT = `"use strict";
(() => {
  const { origin } = new URL(document.currentScript.src);
  const create = (type, { ephemeralKeySecret: key, issuingCard: card, nonce }) => ({
    mount(target) {
      const frame = document.createElement("iframe");
      frame.title = type;
      frame.width = "100%";
      frame.height = "28";
      frame.src = origin + "/simulator/elements#" + new URLSearchParams({ type, card, key, nonce });
      (typeof target === "string" ? document.querySelector(target) : target).replaceChildren(frame);
    },
  });
  const nonce = () => "ephkn_simulator_" + crypto.randomUUID();
  window.Stripe = () => ({
    createEphemeralKeyNonce: () => Promise.resolve({ nonce: nonce() }),
    elements: () => ({ create }),
  });
})();
`;

const FRAME = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>Card</title>
    <link rel="icon" href="data:," />
    <script defer src="/simulator/elements.js"></script>
  </head>
  <body><output></output></body>
</html>
`;

const FRAME_SCRIPT = `"use strict";
const { type, ...asked } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
const part = { issuingCardNumberDisplay: "number", issuingCardCvcDisplay: "code", issuingCardExpiryDisplay: "expiry" }[type];
fetch("/simulator/elements/reveal", { method: "POST", body: JSON.stringify(asked) })
  .then((answer) => answer.json())
  .then((card) => { document.querySelector("output").textContent = card[part] ?? "Not available"; });
`;

/** Files of the elements, which browsers load without a key. */
export const ELEMENT_FILES: Readonly<Record<string, Served>> = {
  "/v3/": { type: "text/javascript", text: SCRIPT },
  "/simulator/elements": { type: "text/html", text: FRAME },
  "/simulator/elements.js": { type: "text/javascript", text: FRAME_SCRIPT },
};

export const REVEAL_PATH = "/simulator/elements/reveal";
