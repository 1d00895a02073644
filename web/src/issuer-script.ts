import { api } from "./api.ts";
import type { Answer, Output } from "../../src/client/types.ts";

/** The part of Stripe.js that shows cards. */
interface IssuerScript {
  createEphemeralKeyNonce(of: { issuingCard: string }): Promise<{ readonly nonce?: string }>;
  elements(): {
    create(
      type: string,
      of: { readonly issuingCard: string; readonly nonce: string; readonly ephemeralKeySecret: string },
    ): { mount(into: HTMLElement): void };
  };
}

declare global {
  interface Window {
    Stripe?: (publishableKey: string) => IssuerScript;
  }
}

export const CARD_PARTS = {
  number: { type: "issuingCardNumberDisplay", label: "Number" },
  expiry: { type: "issuingCardExpiryDisplay", label: "Expires" },
  code: { type: "issuingCardCvcDisplay", label: "Code" },
} as const;

export type CardPart = keyof typeof CARD_PARTS;

const loaded = (url: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = url;
    script.addEventListener("load", () => resolve());
    script.addEventListener("error", () => reject(new Error("The issuer’s script can’t be loaded.")));
    document.head.append(script);
  });

type CardViewed = Answer<Output<"viewCard">>;

/**
 * Shows a payment's card in these elements with the issuer's script. A refusal is the service's; an error is the
 * script's.
 */
export async function showCard(
  id: string,
  places: Readonly<Record<CardPart, HTMLElement>>,
): Promise<CardViewed> {
  const first = await api.viewCard({ id, body: {} });
  if (!first.ok) return first;
  const { cardRef: issuingCard, publishableKey, scriptUrl } = first.value.card;
  if (window.Stripe === undefined) await loaded(scriptUrl);
  const script = window.Stripe?.(publishableKey);
  const { nonce } = (await script?.createEphemeralKeyNonce({ issuingCard })) ?? {};
  if (script === undefined || nonce === undefined) throw new Error("The issuer’s script shows no card.");
  const second = await api.viewCard({ id, body: { nonce } });
  if (!second.ok) return second;
  const { ephemeralKey: ephemeralKeySecret } = second.value.card;
  if (ephemeralKeySecret === null) throw new Error("The service answered no key.");
  const elements = script.elements();
  for (const part of Object.keys(places) as CardPart[])
    elements.create(CARD_PARTS[part].type, { issuingCard, nonce, ephemeralKeySecret }).mount(places[part]);
  return second;
}
