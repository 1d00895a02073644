import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { RequestHandler } from "express";
import helmet from "helmet";
import { isSecure } from "../../src/contract/cookies.ts";
import type { CardElements } from "../../src/payments/card-issuer.ts";

/** Content security policy: this origin only, nothing inline, no framing. */
const CONTENT_SECURITY_POLICY = {
  defaultSrc: ["'none'"],
  scriptSrc: ["'self'"],
  styleSrc: ["'self'"],
  connectSrc: ["'self'"],
  imgSrc: ["'self'", "data:"],
  fontSrc: ["'self'"],
  formAction: ["'self'"],
  frameAncestors: ["'none'"],
  baseUri: ["'none'"],
};

/** Content security policy of the page that shows a card. Also allows the issuers' scripts and frames. */
export const cardPagePolicy = (elements: readonly CardElements[]): string =>
  policyOf({
    ...CONTENT_SECURITY_POLICY,
    scriptSrc: ["'self'", ...elements.flatMap(({ scripts }) => scripts)],
    frameSrc: elements.flatMap(({ frames }) => frames),
    connectSrc: ["'self'", ...elements.flatMap(({ calls }) => calls)],
  });

const policyOf = (directives: Readonly<Record<string, readonly string[]>>): string =>
  Object.entries(directives)
    .map(
      ([name, sources]) =>
        `${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} ${sources.join(" ")}`,
    )
    .join(";");

/**
 * Sets the security headers of every response, pages and API alike. HSTS is sent only if the service is configured to
 * be behind https.
 */
export function securityHeaders(baseUrl: string): RequestHandler {
  const protect = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: CONTENT_SECURITY_POLICY },
    frameguard: { action: "deny" },
    strictTransportSecurity: isSecure(baseUrl),
  });
  const headers = headersOf(protect);
  return (_request, response, next) => {
    // Responses contain financial and personal data. A cacheable one (an image) sets its own policy.
    response.setHeader("Cache-Control", "no-store");
    for (const [name, value] of headers) response.setHeader(name, value);
    response.removeHeader("X-Powered-By");
    next();
  };
}

type Protect = ReturnType<typeof helmet>;

/** Builds the headers once: they are the same for every response, and helmet would rebuild them each time. */
function headersOf(protect: Protect): readonly (readonly [string, string])[] {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  protect(response.req, response, (error) => {
    if (error !== undefined) throw new Error("the security headers could not be made", { cause: error });
  });
  return response.getHeaderNames().map((name) => [name, String(response.getHeader(name))] as const);
}
