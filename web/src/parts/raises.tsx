import { Button, Group, NativeSelect, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactElement, useState } from "react";
import { valueOf } from "../../../src/client/client.ts";
import type { Output } from "../../../src/client/types.ts";
import { useAction } from "../action.ts";
import { api } from "../api.ts";
import { money, onTheWall } from "../format.ts";
import { useMay } from "../session.tsx";
import { Deny } from "./deny.tsx";
import { When, Written } from "./parts.tsx";
import { Problem } from "./problem.tsx";

type Raise = Output<"listRaiseRequests">["raiseRequests"][number];

const HOUR_MS = 3_600_000;
const STALE = [["raises"], ["agents"], ["budgets"]] as const;

/** Offered durations of a raise of limits by period. */
const LASTING: readonly { readonly label: string; readonly endsAt: () => string | null | undefined }[] = [
  { label: "Until each period ends", endsAt: () => undefined },
  { label: "For 24 hours", endsAt: () => after(24) },
  { label: "For 7 days", endsAt: () => after(7 * 24) },
  { label: "For good", endsAt: () => null },
];
const after = (hours: number): string => new Date(Date.now() + hours * HOUR_MS).toISOString();

/** Undecided requests of agents for higher limits. Renders nothing if there are none. */
export function Raises(): ReactElement | null {
  const { data } = useQuery({
    queryKey: ["raises", "pending"],
    queryFn: async ({ signal }) =>
      valueOf(await api.listRaiseRequests({ query: { status: "pending", limit: 50 } }, { signal })),
  });
  const raises = data?.raiseRequests ?? [];
  if (raises.length === 0) return null;
  return (
    <Stack mb="md" component="section" aria-labelledby="raises">
      <Title order={2} id="raises">
        Raises
      </Title>
      {raises.map((raise) => (
        <RaiseCard key={raise.id} raise={raise} />
      ))}
    </Stack>
  );
}

function RaiseCard({ raise }: { readonly raise: Raise }): ReactElement {
  const { agentId, agentName, amountCents, createdAt, id, reason, shortfalls } = raise;
  const [lasting, setLasting] = useState(0);
  const [isRefusing, setRefusing] = useState(false);
  const isAdmin = useMay("admin");
  const grant = useAction(
    (endsAt: string | null | undefined) =>
      api.grantRaiseRequest({ id, body: endsAt === undefined ? {} : { endsAt } }),
    { stale: STALE },
  );
  const refuse = useAction((feedback: string) => api.refuseRaiseRequest({ id, body: { feedback } }), {
    stale: STALE,
  });
  const hasPeriods = shortfalls.some(({ resetsAt }) => resetsAt !== null);
  return (
    <div className="card approval" role="group" aria-label={`A raise of ${agentName}`}>
      <Stack gap="xs">
        <Text fw={550}>
          <Link to="/agents/$id" params={{ id: agentId }} className="row-link inline">
            <Written text={agentName} />
          </Link>{" "}
          asks for room for {money(amountCents)}
        </Text>
        <Text size="sm" className="break">
          <Written text={reason} />
        </Text>
        <ul className="lacking">
          {shortfalls.map((each) => (
            <li key={`${each.level} ${each.limit}`}>
              <Text size="sm" component="span">
                {limitOf(each)}: {money(each.missingCents)} more than {money(each.limitCents)}
                {each.resetsAt === null ? ", for good" : `; it begins anew at ${onTheWall(each.resetsAt)}`}
              </Text>
            </li>
          ))}
        </ul>
        <Text size="xs" c="dimmed">
          <When iso={createdAt} />
        </Text>
        <Problem text={grant.problem || refuse.problem} />
        <Group>
          {isAdmin ? (
            <>
              {hasPeriods ? (
                <NativeSelect
                  aria-label="How long"
                  data={LASTING.map(({ label }) => label)}
                  value={LASTING[lasting]?.label ?? ""}
                  onChange={({ currentTarget }) => setLasting(currentTarget.selectedIndex)}
                />
              ) : null}
              <Button loading={grant.isBusy} onClick={() => void grant.run(LASTING[lasting]?.endsAt())}>
                Raise the limits
              </Button>
            </>
          ) : null}
          <Button variant="default" disabled={grant.isBusy} onClick={() => setRefusing(true)}>
            Refuse
          </Button>
        </Group>
      </Stack>
      {isRefusing ? (
        <Deny
          title={`Refuse the raise of ${agentName}`}
          verb="Refuse"
          onClose={() => setRefusing(false)}
          onDeny={(feedback) => {
            setRefusing(false);
            void refuse.run(feedback);
          }}
        />
      ) : null}
    </div>
  );
}

type Limit = NonNullable<Output<"getTransactionExplanation">["limits"]>[number];

const LIMITS: Readonly<Record<Limit["limit"], string>> = {
  per_transaction: "limit per payment",
  budget: "budget",
  daily_spend: "limit per day",
  cap: "cap",
  day: "limit by day",
  week: "limit by week",
  month: "limit by month",
  quarter: "limit by quarter",
  year: "limit by year",
  hourly_velocity: "payments per hour",
  daily_velocity: "payments per day",
};

/** Returns `The team’s cap`. */
export const limitOf = ({ level, limit }: Pick<Limit, "level" | "limit">): string =>
  `The ${level}’s ${LIMITS[limit]}`;
