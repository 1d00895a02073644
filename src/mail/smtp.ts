import { rootCertificates } from "node:tls";
import nodemailer from "nodemailer";
import { z } from "zod";
import { withTimeout } from "../lib/with-timeout.ts";
import { type Mail, type MailMessage, MailUnsent, type Sent } from "./mail.ts";

export interface SmtpServer {
  readonly host: string;
  readonly port: number;
  /**
   * `implicit`: TLS from the first byte. `required`: STARTTLS, without which nothing is sent. `offered`: STARTTLS if
   * available, for a server on this machine, whose certificate is not verified.
   */
  readonly tls: "implicit" | "required" | "offered";
  readonly credentials: { readonly user: string; readonly pass: string } | null;
}

export interface SmtpSettings {
  readonly server: SmtpServer;
  readonly from: { readonly name: string; readonly address: string };
}

const CONNECT_TIMEOUT_MS = 10_000;
const SILENCE_TIMEOUT_MS = 20_000;
/** Timeout of one exchange, within its activity's minute. */
const EXCHANGE_TIMEOUT_MS = 45_000;

/** Matches one address without the special characters of lists, headers and SMTP commands. */
const ONE_ADDRESS = /^[^\s\p{C}"(),:;<>@[\\\]]{1,64}@[^\s\p{C}"(),:;<>@[\\\]]{1,253}$/u;

/**
 * Refusals of a recipient or a message that concern the sender: it must sign in (530, 535, 538), or the server's policy
 * does not let it send this (5.7.x: no relay, an address or domain of bad repute).
 */
const OF_SERVICE = /^5(?:30|35|38)\b|^5\d\d[ -]5\.7\./;

/** The used fields of the library's errors. */
const failure = z
  .object({ code: z.string(), command: z.string(), response: z.string(), responseCode: z.number() })
  .partial()
  .catch({});

/**
 * Sends by SMTP, with a separate connection per message. Certificates are verified against the usual authorities and
 * `extraCa` (PEM). A refusal of the recipient or the message with a code of 500 or above is final; every other failure
 * (the connection, TLS, the credentials, the sender, its policy) may succeed later, once an operator has fixed it.
 */
export function smtpMail({ from, server }: SmtpSettings, extraCa: string | null): Mail {
  const { credentials, host, port, tls } = server;
  const transport = nodemailer.createTransport({
    host,
    port,
    secure: tls === "implicit",
    requireTLS: tls === "required",
    tls: {
      rejectUnauthorized: tls !== "offered",
      ...(extraCa === null ? {} : { ca: [...rootCertificates, extraCa] }),
    },
    ...(credentials === null ? {} : { auth: { ...credentials } }),
    connectionTimeout: CONNECT_TIMEOUT_MS,
    greetingTimeout: CONNECT_TIMEOUT_MS,
    dnsTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SILENCE_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const domain = from.address.slice(from.address.lastIndexOf("@") + 1);
  return {
    async send({ id, subject, text, to }: MailMessage): Promise<Sent> {
      if (!ONE_ADDRESS.test(to)) return "refused";
      const message = {
        messageId: `<${id}@${domain}>`,
        from: { ...from },
        to: { name: "", address: to },
        envelope: { from: from.address, to: [to] },
        subject,
        text,
        headers: { "Auto-Submitted": "auto-generated" },
      };
      try {
        await withTimeout(EXCHANGE_TIMEOUT_MS, transport.sendMail(message));
        return "sent";
      } catch (error) {
        const { code = "unknown", command = "none", response = "", responseCode = 0 } = failure.parse(error);
        const isOfMail = /^(RCPT TO|DATA)/.test(command) && !OF_SERVICE.test(response);
        if (responseCode >= 500 && isOfMail) return "refused";
        throw new MailUnsent(`the mail was not sent: ${code}, ${command}, ${String(responseCode)}`);
      }
    },
  };
}
