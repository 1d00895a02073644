import { Alert, Button, Group, Stack, Tabs } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { type ReactElement, useState } from "react";
import { valueOf } from "../../../src/client/client.ts";
import { useAction } from "../action.ts";
import { api } from "../api.ts";
import { useNames } from "../containers.ts";
import { shortAddress } from "../format.ts";
import { Icon } from "../icons.tsx";
import { useOrganization } from "../organization.ts";
import { ShownLabels } from "../parts/agent-labels.tsx";
import { AgentMark, Usage } from "../parts/agent.tsx";
import { Confirm, useOpened } from "../parts/confirm.tsx";
import { Connect } from "../parts/connect.tsx";
import { type FundedFrom, FundWallet } from "../parts/fund-wallet.tsx";
import { Card, Fact, Facts, Money, Page, State, Waiting, When, Written } from "../parts/parts.tsx";
import { Failed, Problem } from "../parts/problem.tsx";
import { RestrictionsEditor } from "../parts/restrictions-editor.tsx";
import { CopyIcon } from "../parts/secret.tsx";
import { EmergencyStop } from "../parts/stop.tsx";
import { TransactionList } from "../parts/transaction-list.tsx";
import { useMay } from "../session.tsx";
import type { Agent } from "../words.ts";
import { AgentKey } from "./agent-key.tsx";
import { EditAgent } from "./edit-agent.tsx";
import { PolicyEditor } from "./policy-editor.tsx";

export function AgentPage(): ReactElement {
  const { id } = useParams({ from: "/app/agents/$id" });
  const { data, error, refetch } = useQuery({
    queryKey: ["agents", id],
    queryFn: async ({ signal }) => valueOf(await api.getAgent({ id }, { signal })).agent,
  });
  if (data === undefined)
    return error === null ? <Waiting /> : <Failed error={error} retry={() => void refetch()} />;
  return <Known agent={data} />;
}

type OpenDialog = "archive" | "edit" | FundedFrom;

function Known({ agent }: { readonly agent: Agent }): ReactElement {
  const [dialog, openDialog, close] = useOpened<OpenDialog>();
  const isAdmin = useMay("admin");
  const mayPause = useMay("member");
  const stale = [["agents"]];
  const pause = useAction(() => api.pauseAgent({ id: agent.id }), { stale });
  const resume = useAction(() => api.resumeAgent({ id: agent.id }), { stale });
  const isArchived = agent.state === "archived";
  const actions =
    isArchived || !mayPause ? undefined : (
      <>
        {isAdmin ? (
          <Button variant="default" leftSection={<Icon name="edit" />} onClick={() => openDialog("edit")}>
            Edit
          </Button>
        ) : null}
        {agent.state === "active" ? (
          <Button
            variant="default"
            leftSection={<Icon name="pause" />}
            loading={pause.isBusy}
            onClick={() => void pause.run()}
          >
            Pause
          </Button>
        ) : (
          <Button
            variant="default"
            leftSection={<Icon name="play" />}
            loading={resume.isBusy}
            onClick={() => void resume.run()}
          >
            Resume
          </Button>
        )}
        {isAdmin ? <EmergencyStop scope={{ agent }} what="this agent" /> : null}
      </>
    );
  return (
    <Page
      title={agent.name}
      about={
        <Group gap="sm">
          <AgentMark agent={agent} size={24} />
          <State of={agent.state} />
          <ShownLabels agent={agent} />
        </Group>
      }
      actions={actions}
    >
      <Problem text={`${pause.problem}${resume.problem}`} />
      {agent.state === "paused" ? (
        <Alert color="yellow" icon={<Icon name="pause" />} title="This agent is paused">
          Every request of its key is refused. What is on hold fails if it is approved before the agent is
          resumed.
        </Alert>
      ) : null}
      <Tabs defaultValue="overview" keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="overview">Overview</Tabs.Tab>
          <Tabs.Tab value="policy">Policy</Tabs.Tab>
          <Tabs.Tab value="payments">Payments</Tabs.Tab>
          {isArchived ? null : <Tabs.Tab value="connect">Connect</Tabs.Tab>}
        </Tabs.List>
        <Tabs.Panel value="overview" pt="md">
          <Overview agent={agent} onArchive={() => openDialog("archive")} onFund={openDialog} />
        </Tabs.Panel>
        <Tabs.Panel value="policy" pt="md">
          <Stack>
            <PolicyEditor
              agentId={agent.id}
              hasWallet={agent.wallet !== null}
              isReadOnly={isArchived || !isAdmin}
            />
            <RestrictionsEditor level="agent" id={agent.id} isReadOnly={isArchived || !isAdmin} />
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="payments" pt="md">
          <Card flush>
            <TransactionList filters={{ agentId: agent.id }} query={{ agentId: agent.id }} hidesAgent />
          </Card>
        </Tabs.Panel>
        <Tabs.Panel value="connect" pt="md">
          <Card title="Connect" about="To copy into the client or program that runs this agent.">
            <Connect agentId={agent.id} />
          </Card>
        </Tabs.Panel>
      </Tabs>
      {dialog === "archive" ? <Archive agent={agent} onClose={close} /> : null}
      {dialog === "edit" ? <EditAgent agent={agent} onClose={close} /> : null}
      {dialog === "test money" || dialog === "treasury" ? (
        <FundWallet agentId={agent.id} from={dialog} onClose={close} />
      ) : null}
    </Page>
  );
}

/** The wallet's current balance on the chain. */
function Balance({ agentId }: { readonly agentId: string }): ReactElement {
  const { data, isPending } = useQuery({
    queryKey: ["agents", agentId, "wallet"],
    queryFn: async ({ signal }) => valueOf(await api.getAgentWallet({ id: agentId }, { signal })).wallet,
  });
  if (isPending) return <span className="muted">…</span>;
  const cents = data?.balanceCents ?? null;
  return cents === null ? <span className="muted">The chain does not answer</span> : <Money cents={cents} />;
}

interface OverviewProps {
  readonly agent: Agent;
  readonly onArchive: () => void;
  readonly onFund: (from: FundedFrom) => void;
}

function Overview({ agent, onArchive, onFund }: OverviewProps): ReactElement {
  const names = useNames();
  const isAdmin = useMay("admin");
  const { wallet } = agent;
  const { data: organization } = useOrganization();
  const isFundable = isAdmin && agent.state !== "archived";
  const isLocal = organization?.rails.wallet === "local";
  return (
    <div className="columns">
      <Stack>
        <Card title="Budget">
          <Usage agent={agent} />
        </Card>
        <Card title="About">
          <Facts>
            <Fact label="Team">
              <Link to="/teams/$id" params={{ id: agent.teamId }} className="row-link">
                <Written text={names.team(agent.teamId) || "…"} />
              </Link>
            </Fact>
            <Fact label="Project">
              <Link to="/projects/$id" params={{ id: agent.projectId }} className="row-link">
                <Written text={names.project(agent.projectId) || "…"} />
              </Link>
            </Fact>
            <Fact label="Wallet">
              {wallet === null ? (
                <span className="muted">None</span>
              ) : (
                <Group gap={4}>
                  <span className="mono" title={wallet.address}>
                    {shortAddress(wallet.address)}
                  </span>
                  <CopyIcon text={wallet.address} label="Copy the wallet’s address" />
                  <span className="muted">{wallet.chainCaip2}</span>
                </Group>
              )}
            </Fact>
            {wallet === null ? null : (
              <Fact label="Balance">
                <Group gap="sm">
                  <Balance agentId={agent.id} />
                  {isFundable ? (
                    <Button variant="default" size="compact-sm" onClick={() => onFund("treasury")}>
                      Fund from treasury
                    </Button>
                  ) : null}
                  {isFundable && isLocal ? (
                    <Button variant="default" size="compact-sm" onClick={() => onFund("test money")}>
                      Add test money
                    </Button>
                  ) : null}
                </Group>
              </Fact>
            )}
            <Fact label="Tools">{agent.scopes === null ? "All" : agent.scopes.join(", ")}</Fact>
            <Fact label="Created">
              <When iso={agent.createdAt} />
              {agent.createdBy.type === "organization_key" ? " by an organization key" : ""}
            </Fact>
            {agent.archivedAt === null ? null : (
              <Fact label="Archived">
                <When iso={agent.archivedAt} />
              </Fact>
            )}
          </Facts>
        </Card>
      </Stack>
      <Stack>
        <AgentKey agent={agent} />
        {agent.state === "archived" || !isAdmin ? null : (
          <Card title="Archive" about="Permanent: its key is revoked, and what is on hold is denied.">
            <Button color="red" variant="light" leftSection={<Icon name="archive" />} onClick={onArchive}>
              Archive this agent
            </Button>
          </Card>
        )}
      </Stack>
    </div>
  );
}

/** Archives an agent. An archive may leave a wallet to detach, so it is repeated until none is left. */
function Archive({ agent, onClose }: { readonly agent: Agent; readonly onClose: () => void }): ReactElement {
  const [failed, setFailed] = useState(0);
  const archive = useAction(() => api.archiveAgent({ id: agent.id }), { stale: [["agents"], ["budgets"]] });
  const run = async (): Promise<void> => {
    const done = await archive.run();
    if (done === null) return;
    if (done.walletsFailed.length === 0) onClose();
    setFailed(done.walletsFailed.length);
  };
  return (
    <Confirm
      title={`Archive ${agent.name}?`}
      action={failed > 0 ? "Try again" : "Archive"}
      isBusy={archive.isBusy}
      problem={
        failed > 0
          ? "It is archived, but its wallet could not be detached yet. Try again in a moment."
          : archive.problem
      }
      onConfirm={() => void run()}
      onClose={onClose}
    >
      This can’t be undone. Its key is revoked, what waits for a decision is denied, and the service gives up
      its right to spend from the wallet. What the wallet holds stays your organization’s.
    </Confirm>
  );
}
