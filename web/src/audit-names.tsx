import { Link } from "@tanstack/react-router";
import { createContext, type ReactElement, type ReactNode, use } from "react";
import {
  type AuditEntry,
  isResourceKind,
  isUnproved,
  RESOURCE_KINDS,
  systemActor,
} from "../../src/client/audit-actions.ts";
import type { AuditReference } from "../../src/client/audit-changes.ts";
import type { Output } from "../../src/client/types.ts";
import { money } from "./format.ts";
import { Written } from "./parts/parts.tsx";
import { CopyIcon } from "./parts/secret.tsx";

type Name = Output<"listAuditLog">["names"][number];

const keyOf = ({ id, type }: AuditReference): string => `${type}/${id}`;

export type AuditNames = ReadonlyMap<string, Name>;

export const namesOf = (pages: readonly { readonly names: readonly Name[] }[]): AuditNames =>
  new Map(pages.flatMap(({ names }) => names.map((name) => [keyOf(name), name] as const)));

const Names = createContext<AuditNames>(new Map());
export const WithNames = Names.Provider;

/** Returns `Webhook endpoint` for `webhook_endpoint`. */
export const kindLabel = (type: string): string => (isResourceKind(type) ? RESOURCE_KINDS[type] : type);

interface RecordProps {
  readonly of: AuditReference;
  /** Name at the time of the entry, if the entry has it. */
  readonly once?: string | undefined;
}

/**
 * Shows a record by name, with a link to its page. A removed or nameless record is shown by its id, which can be
 * copied.
 */
export function NamedRecord({ of, once }: RecordProps): ReactElement {
  const found = use(Names).get(keyOf(of));
  if (typeof found?.name === "string") {
    const sum = found.amountCents === null ? "" : `${money(found.amountCents)} to `;
    return (
      <RecordLink of={of}>
        {sum}
        <Written text={found.name} />
      </RecordLink>
    );
  }
  return (
    <span>
      {once === undefined ? null : <Written text={once} />} <span className="mono muted break">{of.id}</span>{" "}
      <CopyIcon text={of.id} label={`Copy the id ${of.id}`} />
      {found === undefined ? null : <span className="muted"> no longer exists</span>}
    </span>
  );
}

interface LinkProps {
  readonly of: AuditReference;
  readonly children: ReactNode;
}

function RecordLink({ children, of: { id, type } }: LinkProps): ReactElement {
  const shown = { children, className: "row-link" };
  switch (type) {
    case "agent":
      return <Link to="/agents/$id" params={{ id }} {...shown} />;
    case "team":
      return <Link to="/teams/$id" params={{ id }} {...shown} />;
    case "project":
      return <Link to="/projects/$id" params={{ id }} {...shown} />;
    case "approval":
      return <Link to="/approvals/$id" params={{ id }} {...shown} />;
    case "transaction":
      return <Link to="/transactions" search={{ open: id }} {...shown} />;
    case "webhook_endpoint":
      return <Link to="/settings/webhooks/$id" params={{ id }} {...shown} />;
    case "user":
    case "invite":
      return <Link to="/settings/members" {...shown} />;
    case "organization_key":
      return <Link to="/settings/keys" {...shown} />;
    case "organization":
      return <Link to="/settings/organization" {...shown} />;
    default:
      return <span>{children}</span>;
  }
}

export function Actor({ entry }: { readonly entry: AuditEntry }): ReactElement {
  const { id, name, type } = entry.actor;
  if (type === "system") return <>{systemActor(id)}</>;
  return (
    <>
      <NamedRecord of={{ type, id }} once={name} />
      {isUnproved(entry) ? <span className="muted"> (not proved)</span> : null}
    </>
  );
}

/** The record that an entry concerns; null if the entry names none. */
export function Resource({ entry }: { readonly entry: AuditEntry }): ReactElement | null {
  const { after, before, resource } = entry;
  if (resource.id === null) return null;
  const once = textIn(after, "name") ?? textIn(before, "name") ?? textIn(before, "email");
  return <NamedRecord of={{ type: resource.type, id: resource.id }} once={once} />;
}

function textIn(value: unknown, name: string): string | undefined {
  const found: unknown = typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
  return typeof found === "string" ? found : undefined;
}
