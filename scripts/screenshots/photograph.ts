import { join } from "node:path";
import { generate } from "otplib";
import type { Browser, Page } from "puppeteer-core";
import { findChromium, launchChromium } from "../../test/support/chromium.ts";
import { OWNER, type Stage } from "./populate.ts";

export interface Session {
  readonly origin: string;
  readonly stage: Stage;
  readonly folder: string;
  readonly type: "png" | "webp";
}

/** What is pressed on a page before its picture is taken. */
interface Shot {
  readonly name: string;
  readonly path: string;
  readonly press?: readonly string[];
}

const DESK = { width: 1_280, height: 820 } as const;
const PHONE = { width: 390, height: 844, isMobile: true, hasTouch: true } as const;
/** A page may wait for its share of requests in the minute. */
const WITHIN_MS = 150_000;
/** For what moves to have come to rest. */
const REST_MS = 400;

const shotsOf = ({ agentId, approvalId, projectId, teamId, transactionId }: Stage): readonly Shot[] => [
  { name: "overview", path: "/" },
  { name: "approvals", path: "/approvals" },
  { name: "approval", path: `/approvals/${approvalId}` },
  { name: "approvals-compact", path: "/approvals?view=compact" },
  { name: "deny", path: "/approvals", press: ["button:Deny…"] },
  { name: "agents", path: "/agents" },
  { name: "agent", path: `/agents/${agentId}` },
  { name: "policy", path: `/agents/${agentId}`, press: ["tab:Policy"] },
  { name: "connect", path: `/agents/${agentId}`, press: ["tab:Connect"] },
  { name: "new-agent", path: "/agents?create=true" },
  { name: "transactions", path: "/transactions" },
  { name: "transactions-search", path: "/transactions?search=cloud" },
  { name: "transaction", path: `/transactions?open=${transactionId}` },
  { name: "projects", path: "/projects" },
  { name: "project", path: `/projects/${projectId}` },
  { name: "team", path: `/teams/${teamId}` },
  { name: "organization", path: "/settings/organization" },
  { name: "keys", path: "/settings/keys" },
  { name: "members", path: "/settings/members" },
  { name: "webhooks", path: "/settings/webhooks" },
  { name: "security", path: "/settings/security" },
  { name: "audit", path: "/settings/audit" },
  { name: "audit-change", path: "/settings/audit", press: ["button:Changed budget of project"] },
];

/** Takes all pictures. */
export async function photograph(session: Session): Promise<void> {
  const executable = await findChromium();
  if (executable === null) throw new Error("There is no Chromium; CHROMIUM_PATH names one.");
  const browser = await launchChromium(executable);
  try {
    await entrance(browser, session);
    const page = await browser.newPage();
    await signIn(page, session);
    for (const [device, viewport] of [
      ["desk", DESK],
      ["phone", PHONE],
    ] as const) {
      await page.setViewport(viewport);
      for (const scheme of ["light", "dark"] as const) {
        await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
        for (const shot of shotsOf(session.stage))
          await take(page, session, shot, `${shot.name}-${scheme}-${device}`);
      }
    }
  } finally {
    await browser.close();
  }
}

async function entrance(browser: Browser, session: Session): Promise<void> {
  const page = await browser.newPage();
  await page.setViewport(DESK);
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.goto(`${session.origin}/`);
    await page.waitForSelector("#sign-in");
    await picture(page, session, `sign-in-${scheme}-desk`);
  }
  await page.close();
}

async function signIn(page: Page, { origin, stage }: Session): Promise<void> {
  page.setDefaultTimeout(WITHIN_MS);
  await page.goto(`${origin}/`);
  await page.locator("#email").fill(OWNER.email);
  await page.locator("#password").fill(OWNER.password);
  await page.locator("#sign-in button[type=submit]").click();
  // The code before this one may be used up already.
  const epoch = Date.now() / 1_000 + 30;
  await page.locator('::-p-aria([name="Digit 1"])').click();
  await page.keyboard.type(await generate({ secret: stage.totpSecret, epoch }));
  await page.waitForSelector(".frame");
}

async function take(page: Page, session: Session, { path, press = [] }: Shot, name: string): Promise<void> {
  await page.goto(`${session.origin}${path}`);
  await page.waitForSelector("main h1");
  await page.waitForFunction("document.querySelector('.mantine-Skeleton-root') === null");
  for (const each of press) {
    const [role, label] = each.split(":");
    const found = await page.waitForSelector(`::-p-aria([name="${label ?? ""}"][role="${role ?? ""}"])`);
    // Not where one of the bars lies over it.
    await found?.evaluate((element) => element.scrollIntoView({ block: "center" }));
    await found?.click();
  }
  await page.waitForFunction("document.querySelector('.mantine-Skeleton-root') === null");
  await picture(page, session, name);
}

async function picture(page: Page, { folder, type }: Session, name: string): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, REST_MS));
  const path = `${join(folder, name)}.${type}` as const;
  await page.screenshot({ path, type, ...(type === "webp" ? { quality: 60 } : {}) });
}
