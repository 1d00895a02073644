import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { RequestHandler } from "express";
import helmet from "helmet";
import { isSecure } from "../../src/contract/cookies.ts";
import type { CardElements } from "../../src/payments/card-issuer.ts";

/** Content security policy: everything from this origin, nothing inline, in no frame. */
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

/** The policy of the page that shows a card: also these issuers' scripts and frames. */
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

/** Headers of every answer, pages and API alike. HSTS only where the service is configured to be behind https. */
export function securityHeaders(baseUrl: string): RequestHandler {
  const protect = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: CONTENT_SECURITY_POLICY },
    frameguard: { action: "deny" },
    strictTransportSecurity: isSecure(baseUrl),
  });
  const headers = headersOf(protect);
  return (_request, response, next) => {
    // Answers are about money and people; what may be kept (an image) says so itself.
    response.setHeader("Cache-Control", "no-store");
    for (const [name, value] of headers) response.setHeader(name, value);
    response.removeHeader("X-Powered-By");
    next();
  };
}

type Protect = ReturnType<typeof helmet>;

/** They are the same for every answer, and made once: helmet makes each of them anew. */
function headersOf(protect: Protect): readonly (readonly [string, string])[] {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  protect(response.req, response, (error) => {
    if (error !== undefined) throw new Error("the security headers could not be made", { cause: error });
  });
  return response.getHeaderNames().map((name) => [name, String(response.getHeader(name))] as const);
}
