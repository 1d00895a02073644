import { type Page, TimeoutError } from "puppeteer-core";
import { z } from "zod";
import { cookieNames } from "../../src/contract/cookies.ts";
import { freshAddress } from "./api.ts";

/** What tests do on every kind of page in a browser. */

/** It is not promised: so long a busy machine may take for what else takes a moment. */
export const WITHIN_MS = 120_000;
export const LOOK_MS = 100;
const FOUND_MS = 5_000;

const held = z.object({ found: z.unknown() });

/**
 * What an expression comes to in the page once it is not null, also across a reload. The page looks by itself and by a timer:
 * asking it each time would cost both sides more, and a frame of its own for each look most of all.
 */
export async function within(
  page: Page,
  expression: string,
  what: string,
  timeout = WITHIN_MS,
): Promise<unknown> {
  try {
    const found = await page.waitForFunction(
      `(() => { const found = (${expression}); return found === null ? null : { found }; })()`,
      { polling: LOOK_MS, timeout },
    );
    return held.parse(await found.jsonValue()).found;
  } catch (error) {
    throw new Error(`not within ${String(timeout)} ms: ${what}; ${await shownBy(page)}`, { cause: error });
  }
}

const TEXT_MAX = 600;

/** Where the page is and what is read on it, for the reader of a failure. */
async function shownBy(page: Page): Promise<string> {
  const text = await page.evaluate("document.body.innerText").catch((error: unknown) => String(error));
  return `${page.url()} shows: ${String(text).replaceAll(/\s+/g, " ").slice(0, TEXT_MAX)}`;
}

/** From now on the page's browser is signed in by this session's token alone, or not at all, and comes from somewhere else. */
export async function becomes(page: Page, origin: string, token: string | null): Promise<void> {
  // The tests share one machine, and sign-ins are counted by address.
  await page.setExtraHTTPHeaders({ "x-forwarded-for": freshAddress() });
  const context = page.browserContext();
  await context.deleteCookie(...(await context.cookies()));
  if (token === null) return;
  const { hostname: domain } = new URL(origin);
  const cookie = { name: cookieNames(origin).session, domain, path: "/" };
  await context.setCookie({ ...cookie, value: token, httpOnly: true, sameSite: "Strict" });
}

/** Once it is there, can be used and stands still. What is drawn anew meanwhile is looked for again: it would be waited for in vain. */
export async function clickOn(
  page: Page,
  selector: string,
  { count = 1, ms = WITHIN_MS }: { readonly count?: number; readonly ms?: number } = {},
): Promise<void> {
  const end = Date.now() + ms;
  for (;;) {
    const timeout = Math.max(1, Math.min(FOUND_MS, end - Date.now()));
    try {
      return await page.locator(selector).setTimeout(timeout).click({ count });
    } catch (error) {
      if (!(error instanceof TimeoutError)) throw error;
      if (Date.now() >= end)
        throw new Error(`not within ${String(ms)} ms: a click on ${selector}`, { cause: error });
    }
  }
}

/** Puts a text in the place of what a field holds, at once, as a paste does: each key for itself costs the page a frame. */
export async function typeInto(page: Page, selector: string, text: string): Promise<void> {
  await clickOn(page, selector, { count: 3 });
  await page.keyboard.sendCharacter(text);
}
