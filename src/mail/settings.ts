import { resolve } from "node:path";
import ipaddr from "ipaddr.js";
import { z } from "zod";
import type { SmtpServer, SmtpSettings } from "./smtp.ts";

export interface MailSettings extends SmtpSettings {
  /** Certificate authorities trusted in addition to the usual ones. */
  readonly caFile: string | null;
  /** Address of the dashboard, for links. */
  readonly baseUrl: string;
}

export const isLoopback = (host: string): boolean =>
  host === "localhost" || (ipaddr.isValid(host) && ipaddr.process(host).range() === "loopback");

const HOST = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i;
const DEFAULT_PORTS = { implicit: 465, required: 587, offered: 587 } as const;

/** Does not repeat the value, which contains a password. */
const NO_SERVER =
  "Name a mail server and nothing else, such as `smtps://user:password@mail.example.com` or " +
  "`smtp://user:password@mail.example.com:587`; encode special characters of user and password (%40 for @).";

/** An empty setting counts as missing. */
export const smtpUrl = z
  .string()
  .transform((text, check): SmtpServer | undefined => {
    if (text === "") return undefined;
    const server = serverIn(text);
    if (server !== null) return server;
    check.addIssue({ code: "custom", message: NO_SERVER });
    return z.NEVER;
  })
  .optional();

/** Null if the URL is invalid. Refuses anything but server and credentials: an option could turn verification off. */
function serverIn(text: string): SmtpServer | null {
  if (!URL.canParse(text)) return null;
  const { hash, hostname, password, pathname, port, protocol, search, username } = new URL(text);
  const host = hostname.replace(/^\[|\]$/g, "");
  const isHost = HOST.test(host) || ipaddr.IPv6.isValid(host);
  const credentials = credentialsOf(username, password);
  if (!["smtp:", "smtps:"].includes(protocol) || !isHost || port === "0") return null;
  if (!["", "/"].includes(pathname) || search !== "" || hash !== "" || credentials === undefined) return null;
  const byStartTls = isLoopback(host) ? "offered" : "required";
  const tls = protocol === "smtps:" ? "implicit" : byStartTls;
  return { host, port: port === "" ? DEFAULT_PORTS[tls] : Number(port), tls, credentials };
}

/** Undefined if incomplete or wrongly encoded. */
function credentialsOf(username: string, password: string): SmtpServer["credentials"] | undefined {
  if (username === "" && password === "") return null;
  if (username === "" || password === "") return undefined;
  try {
    return { user: decodeURIComponent(username), pass: decodeURIComponent(password) };
  } catch {
    return undefined;
  }
}

const SENDER = /^(?:(?<name>[^<>"\p{C}]{0,100}?)\s*<(?<inner>[^<>]+)>|(?<bare>[^<>]+))$/u;
const ADDRESS =
  /^[A-Za-z0-9._+-]{1,64}@([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;

export const mailFrom = z
  .string()
  .transform((text, check): SmtpSettings["from"] | undefined => {
    if (text === "") return undefined;
    const { bare, inner, name = "" } = SENDER.exec(text.trim())?.groups ?? {};
    const address = (inner ?? bare ?? "").trim();
    if (ADDRESS.test(address)) return { name: name.trim(), address };
    check.addIssue({
      code: "custom",
      message: "Name the sender, such as `spending@example.com` or `Spending <spending@example.com>`.",
    });
    return z.NEVER;
  })
  .optional();

/** The mail settings as parsed individually. */
export interface MailSettingsRead {
  readonly SMTP_URL?: SmtpServer | undefined;
  readonly MAIL_FROM?: SmtpSettings["from"] | undefined;
  readonly SMTP_CA_FILE?: string | undefined;
  readonly BASE_URL?: string | undefined;
}

/** Returns the settings; null if mail is off; or a text that says what is missing. */
export function mailSettings(read: MailSettingsRead): MailSettings | string | null {
  const { BASE_URL, MAIL_FROM: from, SMTP_CA_FILE: caFile, SMTP_URL: server } = read;
  const alone = "nothing is mailed without a server: set SMTP_URL, too.";
  if (server === undefined) {
    if (from !== undefined) return `MAIL_FROM: ${alone}`;
    return caFile === undefined ? null : `SMTP_CA_FILE: ${alone}`;
  }
  if (from === undefined) return "SMTP_URL: mail needs a sender: set MAIL_FROM, too.";
  if (BASE_URL === undefined) return "SMTP_URL: links in mail need the service's address: set BASE_URL, too.";
  return { server, from, caFile: caFile === undefined ? null : resolve(caFile), baseUrl: BASE_URL };
}
