import { Alert, Button, Stack, Text } from "@mantine/core";
import { type ReactElement, useState } from "react";
import { Modal } from "./dialog.tsx";
import type { Output } from "../../../src/client/types.ts";
import { useAction } from "../action.ts";
import { api } from "../api.ts";
import { number } from "../format.ts";
import { Icon } from "../icons.tsx";
import { Problem } from "./problem.tsx";
import { Block } from "./secret.tsx";

/** Verifies the chain as far as it goes, and says which parts the service cannot check by itself. */
export function AuditVerification({ onClose }: { readonly onClose: () => void }): ReactElement {
  const [done, setDone] = useState<Output<"verifyAuditLog"> | null>(null);
  const walk = useAction((after: number) => api.verifyAuditLog({ query: { after } }));
  const run = async (): Promise<void> => {
    let after = 0;
    for (;;) {
      const found = await walk.run(after);
      setDone(found);
      if (found === null || found.broken !== null || found.verifiedTo >= found.lastSequence) return;
      after = found.verifiedTo;
    }
  };
  return (
    <Modal opened onClose={onClose} title="Verify the log" size="lg">
      <Stack>
        <Text size="sm">
          Each entry holds the hash of the one before it, and is sealed with the service’s own key.
        </Text>
        <Problem text={walk.problem} />
        {done === null ? null : <Verdict found={done} />}
        <Button className="start" loading={walk.isBusy} onClick={() => void run()}>
          Verify all entries
        </Button>
        <Text size="sm" c="dimmed">
          Whether its end was cut off, only anchors tell, which are kept outside of the database. Whoever
          operates the service holds the log against them:
        </Text>
        <Block label="In a shell, beside the service" text="npm run --silent admin -- verify-audit-log" />
      </Stack>
    </Modal>
  );
}

function Verdict({ found }: { readonly found: Output<"verifyAuditLog"> }): ReactElement {
  const { broken, lastSequence, verifiedTo } = found;
  if (broken !== null) {
    return (
      <Alert
        role="alert"
        color="red"
        variant="light"
        icon={<Icon name="alert" />}
        title={`Broken at no. ${broken.sequence}`}
      >
        {broken.detail}
      </Alert>
    );
  }
  return (
    <Alert role="status" color="teal" variant="light" icon={<Icon name="check" />}>
      {verifiedTo >= lastSequence
        ? `All ${number(lastSequence)} entries are as they were written.`
        : `${number(verifiedTo)} of ${number(lastSequence)} entries so far…`}
    </Alert>
  );
}
