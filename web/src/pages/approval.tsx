import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { type ReactElement, useEffect, useRef, useState } from "react";
import { valueOf } from "../../../src/client/client.ts";
import { api, refusedIn, sentenceOf } from "../api.ts";
import { msUntil, noteServiceTime, useSeconds } from "../clock.ts";
import { decide, type Decided, type Decision } from "../decisions.ts";
import { exactMoney, asWritten, onTheWall, timeLeft } from "../format.ts";
import { Icon } from "../icons.tsx";
import { NO_SUCH, type Outcome, outcomeFor } from "../outcomes.ts";
import { ApprovalBars, LastPayments, useIsContextSettled } from "../parts/approval-bars.tsx";
import { Denial } from "../parts/denial.tsx";
import { Card, Fact, Facts, Page, Waiting, Written } from "../parts/parts.tsx";
import { Problem } from "../parts/problem.tsx";
import { signedOut, useMay, useMe, useSignOut } from "../session.tsx";
import { flagOf } from "../rule-types.tsx";
import { RAILS } from "../rails.ts";
import { type Approval, payeeOf } from "../words.ts";
import { PurchaseFacts } from "../parts/purchase.tsx";

/** Format of an approval's id. Anything else would address another path of the service, or none. */
const ID = /^apr_[0-9A-HJKMNP-TV-Z]{26}$/;

const POLL_INTERVAL_MS = 5_000;
/** Poll interval while an outcome is imminent. */
const FAST_POLL_INTERVAL_MS = 1_500;

/** Page of one payment on hold: shows and follows the payment, and sends a person's decision once. */
export function ApprovalPage(): ReactElement {
  const { id } = useParams({ from: "/app/approvals/$id" });
  const { organization } = useMe();
  const { approval, error, refetch } = useApproval(id);
  const isMissing = !ID.test(id) || refusedIn(error)?.code === "NOT_FOUND";
  return (
    <Page title="Payment approval">
      <div className="decision">
        {isMissing ? (
          <OutcomeNote outcome={NO_SUCH(organization.name)} />
        ) : (
          <>
            <Trouble error={error} onAgain={() => void refetch()} />
            {approval === undefined ? (
              error === null ? (
                <Waiting lines={3} height={90} />
              ) : null
            ) : (
              <Known approval={approval} />
            )}
          </>
        )}
        <SignedInAs />
      </div>
    </Page>
  );
}

/** Polls an approval, more often while an outcome is imminent. */
function useApproval(id: string) {
  const { data, error, refetch } = useQuery({
    queryKey: ["approvals", "one", id],
    enabled: ID.test(id),
    queryFn: async ({ signal }) => {
      const answer = await api.getApproval({ id }, { signal });
      if (answer.ok) noteServiceTime(answer.now);
      return valueOf(answer).approval;
    },
    refetchInterval: ({ state }) => {
      if (refusedIn(state.error)?.code === "NOT_FOUND") return false;
      const approval = state.data;
      if (approval === undefined || state.error !== null) return POLL_INTERVAL_MS;
      if (approval.resolution === "executing") return FAST_POLL_INTERVAL_MS;
      if (approval.resolution !== undefined) return false;
      return msUntil(approval.expiresAt) <= 0 ? FAST_POLL_INTERVAL_MS : POLL_INTERVAL_MS;
    },
  });
  return { approval: data, error, refetch };
}

function Trouble({
  error,
  onAgain,
}: {
  readonly error: unknown;
  readonly onAgain: () => void;
}): ReactElement | null {
  const refused = refusedIn(error);
  if (refused === null || refused.code === "NOT_FOUND" || refused.status === 401) return null;
  return (
    <Alert id="trouble" color="yellow" variant="light" icon={<Icon name="alert" />}>
      <Group justify="space-between">
        <Text size="sm" id="trouble-text" role="status">
          {navigator.onLine ? sentenceOf(refused) : "There is no network at the moment."}
        </Text>
        <Button id="again" variant="default" onClick={onAgain}>
          Try again
        </Button>
      </Group>
    </Alert>
  );
}

type Phase = "choosing" | "denying" | "sending";

function Known({ approval }: { readonly approval: Approval }): ReactElement {
  const client = useQueryClient();
  const { user } = useMe();
  useSeconds();
  const [phase, setPhase] = useState<Phase>("choosing");
  const [decided, setDecided] = useState<Decided | null>(null);
  const [isLost, setLost] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  const isOpen = approval.resolution === undefined;
  const leftMs = msUntil(approval.expiresAt);
  const transaction = useTransaction(approval);
  const isPaused = useIsPaused(approval);
  const isSettled = useIsContextSettled(approval);
  const mayDecide = useMay("member") && isOpen && isSettled && leftMs > 0 && phase !== "sending";
  // Moves the focus to where something has happened.
  useEffect(() => {
    const found = ["outcome", "payment"].map((name) => place.current?.querySelector<HTMLElement>(`#${name}`));
    const focused = found.find((each) => each instanceof HTMLElement);
    // A waiting payment is shown from its heading.
    focused?.focus({ preventScroll: focused.id === "payment" });
  }, [isOpen, phase === "sending"]);

  const send = async (decision: Decision): Promise<void> => {
    setPhase("sending");
    setDecided(null);
    setLost(false);
    const ended = await decide(approval.id, decision, () => setLost(true));
    if (ended.state === "refused" && ended.refused.status === 401) {
      return signedOut(
        client,
        "Your session has ended, and nothing was decided. Sign in, then decide again.",
      );
    }
    if ((ended.state === "done" || ended.state === "late") && ended.approval !== null) {
      client.setQueryData(["approvals", "one", approval.id], ended.approval);
    }
    setDecided(ended);
    setPhase("choosing");
    for (const queryKey of [["approvals"], ["agents"], ["transactions"]])
      void client.invalidateQueries({ queryKey });
  };
  const problem = problemOf(decided);
  return (
    <div ref={place} className="decision">
      {problem === "" ? null : <Problem id="problem" text={problem} />}
      {phase === "sending" ? (
        <OutcomeNote
          outcome={
            isLost
              ? { title: "Checking your decision…", text: "The connection was lost before it was confirmed." }
              : { title: "Sending your decision…" }
          }
        />
      ) : null}
      {isOpen || phase === "sending" ? null : (
        <OutcomeNote outcome={outcomeFor(approval, transaction, user.id, decided)} />
      )}
      {isOpen && leftMs <= 0 && phase !== "sending" ? (
        <OutcomeNote outcome={{ title: "This approval has expired" }} />
      ) : null}
      <Payment approval={approval} left={isOpen ? timeLeft(leftMs) : ""} />
      {mayDecide && isPaused ? (
        <Alert id="warning" color="yellow" variant="light" icon={<Icon name="pause" />}>
          The agent is paused: resume it first. What is approved while it is paused fails.
        </Alert>
      ) : null}
      {mayDecide && phase === "choosing" ? (
        <div id="choice" className="choice">
          <Button id="approve" size="lg" onClick={() => void send({ how: "approve" })}>
            Approve {exactMoney(approval)}
          </Button>
          <Button id="deny" size="lg" variant="default" onClick={() => setPhase("denying")}>
            Deny…
          </Button>
        </div>
      ) : null}
      {mayDecide && phase === "denying" ? (
        <Denial
          onDeny={(feedback) => void send({ how: "deny", feedback })}
          onBack={() => setPhase("choosing")}
        />
      ) : null}
    </div>
  );
}

function problemOf(decided: Decided | null): string {
  if (decided?.state === "not arrived")
    return "Your decision has not arrived: the payment still waits. Decide again.";
  return decided?.state === "refused" ? sentenceOf(decided.refused) : "";
}

/** Reads the payment, once it is decided. */
function useTransaction({ resolution, transactionId }: Approval) {
  const { data } = useQuery({
    queryKey: ["transactions", "one", transactionId, resolution],
    queryFn: async ({ signal }) =>
      valueOf(await api.getTransaction({ id: transactionId }, { signal })).transaction,
    enabled: resolution !== undefined,
    refetchInterval: ({ state }) =>
      state.data === undefined ? FAST_POLL_INTERVAL_MS : state.data.status === "pending" && POLL_INTERVAL_MS,
  });
  return data ?? null;
}

function useIsPaused({ agentId, resolution }: Approval): boolean {
  const { data } = useQuery({
    queryKey: ["agents", agentId],
    queryFn: async ({ signal }) => valueOf(await api.getAgent({ id: agentId }, { signal })).agent,
    enabled: resolution === undefined,
    refetchInterval: POLL_INTERVAL_MS,
  });
  return data?.state === "paused";
}

function OutcomeNote({ outcome }: { readonly outcome: Outcome }): ReactElement {
  return (
    <section id="outcome" role="status" tabIndex={-1} className="card outcome">
      <p id="outcome-title">{outcome.title}</p>
      {outcome.text === undefined ? null : <p id="outcome-text">{outcome.text}</p>}
      {outcome.feedback ? <blockquote id="outcome-feedback">{asWritten(outcome.feedback)}</blockquote> : null}
    </section>
  );
}

function Payment({ approval, left }: { readonly approval: Approval; readonly left: string }): ReactElement {
  return (
    <section id="payment" aria-label="The payment" tabIndex={-1}>
      <Card>
        <Stack>
          <p id="amount" className="amount figure">
            {exactMoney(approval)}
          </p>
          <Facts>
            <Fact label="To">
              <strong id="recipient">
                <Written text={payeeOf(approval)} />
              </strong>{" "}
              ({RAILS[approval.rail].by})
            </Fact>
            <PurchaseFacts
              purchase={{ ...approval, protocol: null, receipt: null }}
              payee={approval.recipient}
            />
            <Fact label="Requested by">
              <Written text={approval.agentName} />
            </Fact>
            <Fact label="Purpose (stated by the agent)">
              <span id="purpose">
                <Written text={approval.purpose} />
              </span>
            </Fact>
            <Fact label="Why it was flagged">
              <ul className="flags">
                {approval.flaggedByRuleTypes.map((type) => (
                  <li key={type}>{flagOf(type)}</li>
                ))}
              </ul>
            </Fact>
            <Fact label="Requested">
              <time dateTime={approval.createdAt}>{onTheWall(approval.createdAt)}</time>
            </Fact>
            <Fact label="Decide until">
              <time dateTime={approval.expiresAt}>{onTheWall(approval.expiresAt)}</time>{" "}
              <strong id="left" role="timer">
                {left}
              </strong>
            </Fact>
          </Facts>
          <div id="budget">
            <ApprovalBars approval={approval} />
          </div>
          <LastPayments approval={approval} shown={10} />
        </Stack>
      </Card>
    </section>
  );
}

/** Shows whose session this is, and lets a visitor who followed a link from a mail or chat change it. */
function SignedInAs(): ReactElement {
  const { organization, user } = useMe();
  const { problem, signOut } = useSignOut();
  return (
    <footer className="signed-in">
      <Text size="sm" c="dimmed" className="break">
        Signed in as{" "}
        <span id="person">
          <Written text={user.name} /> ({user.email})
        </span>{" "}
        of <Written text={organization.name} />.
      </Text>
      <Button id="sign-out" variant="subtle" onClick={() => void signOut()}>
        Sign out
      </Button>
      <Problem id="sign-out-problem" text={problem} />
    </footer>
  );
}
