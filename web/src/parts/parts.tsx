import { Badge, Box, Group, Skeleton, Stack, Text, Title, Tooltip } from "@mantine/core";
import type { ReactElement, ReactNode } from "react";
import { ago, asWritten, money, onTheWall, percent, titled } from "../format.ts";
import { Icon, type IconName } from "../icons.tsx";

interface PageProps {
  readonly title: string;
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

export function Page({ about, actions, children, title }: PageProps): ReactElement {
  return (
    <Stack gap="lg">
      <header className="page-head">
        <div className="page-title">
          <Title order={1}>{title}</Title>
          {about === undefined ? null : (
            <Text c="dimmed" size="sm" mt={4} component="div">
              {about}
            </Text>
          )}
        </div>
        {actions === undefined ? null : <Group gap="xs">{actions}</Group>}
      </header>
      {children}
    </Stack>
  );
}

interface CardProps {
  readonly title?: ReactNode;
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
  /** Whether the contents extend to the edges. */
  readonly flush?: boolean;
}

export function Card({ about, actions, children, flush = false, title }: CardProps): ReactElement {
  return (
    <section className="card">
      {title === undefined && actions === undefined ? null : (
        <div className="card-head">
          <div>
            {title === undefined ? null : <Title order={2}>{title}</Title>}
            {about === undefined ? null : (
              <Text c="dimmed" size="sm" mt={2}>
                {about}
              </Text>
            )}
          </div>
          {actions === undefined ? null : <Group gap="xs">{actions}</Group>}
        </div>
      )}
      <div className={flush ? "card-flush" : "card-body"}>{children}</div>
    </section>
  );
}

interface EmptyProps {
  readonly icon: IconName;
  readonly title: string;
  readonly children: ReactNode;
  readonly action?: ReactNode;
}

/** Placeholder for an empty list, with a way to create the first entry. */
export function Empty({ action, children, icon, title }: EmptyProps): ReactElement {
  return (
    <Stack align="center" gap="xs" className="empty">
      <span className="empty-icon">
        <Icon name={icon} size={26} />
      </span>
      <Text fw={600}>{title}</Text>
      <Text c="dimmed" size="sm" ta="center" maw={420}>
        {children}
      </Text>
      {action === undefined ? null : <Box mt="xs">{action}</Box>}
    </Stack>
  );
}

/** Placeholder with the expected number of lines, so that nothing jumps. */
export function Waiting({
  height = 44,
  lines = 5,
}: {
  readonly lines?: number;
  readonly height?: number;
}): ReactElement {
  return (
    <Stack gap="xs" p="md" aria-hidden="true">
      {Array.from({ length: lines }, (_none, index) => (
        <Skeleton key={index} height={height} radius="sm" />
      ))}
    </Stack>
  );
}

const TONES = {
  active: "teal",
  approved: "teal",
  succeeded: "teal",
  pending: "yellow",
  executing: "yellow",
  paused: "yellow",
  denied: "red",
  failed: "red",
  revoked: "red",
  dropped: "gray",
  archived: "gray",
  expired: "gray",
  reversed: "grape",
} as const;

type Toned = keyof typeof TONES;
const hasTone = (state: string): state is Toned => state in TONES;

/** State as a colored word. */
export function State({ of }: { readonly of: string }): ReactElement {
  return (
    <Badge color={hasTone(of) ? TONES[of] : "gray"} className="state" data-state={of}>
      {titled(of)}
    </Badge>
  );
}

/** Text of an agent or a person, isolated so that it does not change the surrounding writing direction. */
export const Written = ({ text }: { readonly text: string }): ReactElement => <bdi>{asWritten(text)}</bdi>;

/** Amount in figures of equal width. */
export const Money = ({
  cents,
  currency,
}: {
  readonly cents: number;
  readonly currency?: string;
}): ReactElement => <span className="figure">{money(cents, currency)}</span>;

/** Relative time, with the absolute time as its title. */
export function When({ iso }: { readonly iso: string | null }): ReactElement {
  if (iso === null)
    return (
      <Text span c="dimmed">
        Never
      </Text>
    );
  return (
    <Tooltip label={onTheWall(iso)}>
      <time dateTime={iso}>{ago(iso)}</time>
    </Tooltip>
  );
}

interface BarProps {
  readonly label: string;
  readonly limitCents: number | null;
  readonly spentCents: number;
  readonly reservedCents: number;
  /** Additional amount on top. The legend then belongs to several bars. */
  readonly moreCents?: number;
}

type BarPart = "spent" | "reserved" | "more";

/** Legend of a bar's colors. */
export const BarLegend = ({ parts }: { readonly parts: Partial<Record<BarPart, string>> }): ReactElement => (
  <ul className="legend bar-legend">
    {Object.entries(parts).map(([part, text]) => (
      <li key={part}>
        <span className={`swatch bar-${part}`} aria-hidden="true" />
        {text}
      </li>
    ))}
  </ul>
);

const HUNDRED = 100;

/** Bar of a budget: spent, reserved, and an additional amount. */
export function BudgetBar({
  label,
  limitCents,
  moreCents: givenMoreCents,
  reservedCents,
  spentCents,
}: BarProps): ReactElement {
  const hasOwnLegend = givenMoreCents === undefined;
  const moreCents = givenMoreCents ?? 0;
  const used = spentCents + reservedCents + moreCents;
  const whole = limitCents === null ? Math.max(used, 1) : Math.max(limitCents, used, 1);
  const share = (cents: number): number => (HUNDRED * cents) / whole;
  const text =
    limitCents === null
      ? `${money(used)} used, no cap`
      : `${money(used)} of ${money(limitCents)} (${percent(used / Math.max(limitCents, 1))})`;
  const isOver = limitCents !== null && used > limitCents;
  return (
    <div className="bar">
      <div className="bar-head">
        <span>{label}</span>
        <span className="figure">{text}</span>
      </div>
      {limitCents === null ? null : (
        <svg
          className="bar-track"
          role="img"
          aria-label={`${label}: ${text}`}
          viewBox="0 0 100 6"
          preserveAspectRatio="none"
          data-over={isOver}
        >
          <rect className="bar-spent" x="0" y="0" height="6" width={share(spentCents)} />
          <rect
            className="bar-reserved"
            x={share(spentCents)}
            y="0"
            height="6"
            width={share(reservedCents)}
          />
          <rect
            className="bar-more"
            x={share(spentCents + reservedCents)}
            y="0"
            height="6"
            width={share(moreCents)}
          />
        </svg>
      )}
      {limitCents === null || reservedCents === 0 || !hasOwnLegend ? null : (
        <BarLegend
          parts={{ spent: `${money(spentCents)} spent`, reserved: `${money(reservedCents)} reserved` }}
        />
      )}
    </div>
  );
}

interface FactProps {
  readonly label: ReactNode;
  readonly children: ReactNode;
}

export const Fact = ({ children, label }: FactProps): ReactElement => (
  <div className="fact">
    <dt>{label}</dt>
    <dd>{children}</dd>
  </div>
);

export const Facts = ({ children }: { readonly children: ReactNode }): ReactElement => (
  <dl className="facts">{children}</dl>
);
