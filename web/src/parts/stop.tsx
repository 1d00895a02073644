import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactElement, useState } from "react";
import type { Refused } from "../../../src/client/types.ts";
import { sentence, sentenceOf } from "../api.ts";
import { emergencyStop, type Scope, type Step } from "../emergency-stop.ts";
import { Icon } from "../icons.tsx";
import { useStepUp } from "../step-up.tsx";
import { Problem } from "./problem.tsx";

interface StopProps {
  readonly scope: Scope;
  /** Scope in words: `this agent`, `all agents of the team`. */
  readonly what: string;
  readonly label?: string;
}

export function EmergencyStop({ label = "Emergency stop", scope, what }: StopProps): ReactElement {
  const client = useQueryClient();
  const stepUp = useStepUp();
  const [isOpen, setOpen] = useState(false);
  const [step, setStep] = useState<Step | null>(null);
  const [problem, setProblem] = useState("");
  const stop = async (): Promise<void> => {
    setProblem("");
    try {
      const ended = await emergencyStop(scope, stepUp, setStep);
      if (ended.ok) return setOpen(false);
      setProblem(
        ended.refused.code === "STEP_UP_REQUIRED"
          ? "Everything is paused. The keys are still good: they are revoked once you have confirmed that it’s you."
          : `${ended.isPaused ? "Everything is paused, but keys are left. " : ""}${reasonOf(ended.refused)} What is done stays done: go on by stopping again.`,
      );
    } finally {
      setStep(null);
      await client.invalidateQueries({ queryKey: ["agents"] });
    }
  };
  return (
    <>
      <Button color="red" variant="outline" leftSection={<Icon name="stop" />} onClick={() => setOpen(true)}>
        {label}
      </Button>
      <Modal opened={isOpen} onClose={() => setOpen(false)} title={`Stop ${what}?`}>
        <Stack>
          <Text size="sm">
            Payments stop immediately, and every key is revoked. What waits for a decision stays on hold. To
            take it back, create new keys and resume.
          </Text>
          <Problem text={problem} />
          <div role="status">{step === null ? null : <Text size="sm">{STEPS[step]}</Text>}</div>
          <Group justify="flex-end">
            <Button variant="default" onClick={() => setOpen(false)} disabled={step !== null}>
              Cancel
            </Button>
            <Button color="red" loading={step !== null} onClick={() => void stop()} data-autofocus>
              Stop now
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}

const STEPS: Readonly<Record<Step, string>> = {
  pausing: "Pausing…",
  revoking: "Everything is paused. Revoking keys…",
};

/** The service's own message names the projects that it could not stop. */
const reasonOf = (refused: Refused): string =>
  refused.code === "SERVICE_UNAVAILABLE" ? sentence(refused.message) : sentenceOf(refused);
