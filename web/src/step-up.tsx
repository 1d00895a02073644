import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactElement, type ReactNode, use, useMemo, useRef, useState } from "react";
import { api, sentenceOf } from "./api.ts";
import { Icon } from "./icons.tsx";
import { CodeInput } from "./parts/code-input.tsx";
import { Problem } from "./parts/problem.tsx";
import { hasPasskeys, NO_PASSKEYS, PasskeyError, signByPasskey } from "./passkeys.ts";
import { ME, useMe } from "./session.tsx";

/** Asks for a second factor. Resolves to whether the session is now stepped up. */
type StepUp = () => Promise<boolean>;

const StepUpContext = createContext<StepUp>(() => Promise.resolve(false));

export const useStepUp = (): StepUp => use(StepUpContext);

/** Provides one step-up dialog for all pages: a refused call continues once the factor is verified. */
export function StepUpProvider({ children }: { readonly children: ReactNode }): ReactElement {
  const [isOpen, setOpen] = useState(false);
  const waiting = useRef<((done: boolean) => void)[]>([]);
  const client = useQueryClient();
  const ask = useMemo(
    (): StepUp => () =>
      new Promise((resolve) => {
        waiting.current.push(resolve);
        setOpen(true);
      }),
    [],
  );
  const close = (done: boolean): void => {
    setOpen(false);
    for (const resolve of waiting.current.splice(0)) resolve(done);
    if (done) void client.invalidateQueries({ queryKey: ME });
  };
  return (
    <StepUpContext value={ask}>
      {children}
      <Modal opened={isOpen} onClose={() => close(false)} title="Confirm that it’s you" size="sm">
        <Factors onDone={() => close(true)} onCancel={() => close(false)} />
      </Modal>
    </StepUpContext>
  );
}

interface FactorsProps {
  readonly onDone: () => void;
  readonly onCancel: () => void;
}

function Factors({ onCancel, onDone }: FactorsProps): ReactElement {
  const { secondFactors } = useMe().user;
  const byPasskey = secondFactors.includes("passkey") && hasPasskeys();
  const [isByCode, setByCode] = useState(!byPasskey);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const [code, setCode] = useState("");

  const attempt = async (run: () => Promise<string | null>): Promise<void> => {
    setBusy(true);
    setProblem("");
    const failure = await run();
    setBusy(false);
    if (failure === null) return onDone();
    setProblem(failure);
    setCode("");
  };
  const passkey = () => attempt(stepUpByPasskey);
  const totp = (typed: string) => attempt(() => stepUpByCode(typed));

  if (!byPasskey && !secondFactors.includes("totp")) {
    return (
      <Stack>
        <Text size="sm">
          {secondFactors.includes("passkey")
            ? `This needs your passkey. ${NO_PASSKEYS} Open the service there, or enrol an authenticator app there to use it here.`
            : "This needs a second factor, and you have none yet. Enrol a passkey or an authenticator app in your security settings, then try again."}
        </Text>
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel}>
            Cancel
          </Button>
          <Button component="a" href="/settings/security">
            Security settings
          </Button>
        </Group>
      </Stack>
    );
  }
  return (
    <Stack>
      <Text size="sm" c="dimmed">
        What you are about to do changes money, keys or people. Afterwards it goes on by itself; you are not
        asked again for 5 minutes.
      </Text>
      <Problem text={problem} />
      {isByCode ? (
        <CodeInput
          label="The six digits of your authenticator app"
          autoFocus
          value={code}
          onChange={setCode}
          onComplete={(typed) => void totp(typed)}
          isBusy={busy}
          error={problem === "" ? undefined : ""}
        />
      ) : (
        <Button
          size="md"
          leftSection={<Icon name="finger" />}
          loading={busy}
          onClick={() => void passkey()}
          data-autofocus
        >
          Use your passkey
        </Button>
      )}
      <Group justify="space-between">
        {byPasskey && secondFactors.includes("totp") ? (
          <Button variant="subtle" size="compact-sm" onClick={() => setByCode(!isByCode)}>
            {isByCode ? "Use your passkey instead" : "Use a code instead"}
          </Button>
        ) : (
          <span />
        )}
        <Button variant="default" size="compact-sm" onClick={onCancel}>
          Cancel
        </Button>
      </Group>
    </Stack>
  );
}

/** Steps up by code. Returns the problem; null on success. */
async function stepUpByCode(code: string): Promise<string | null> {
  const answer = await api.stepUp({ body: { method: "totp", code } });
  return answer.ok ? null : sentenceOf(answer.refused);
}

async function stepUpByPasskey(): Promise<string | null> {
  const options = await api.stepUpOptions();
  if (!options.ok) return sentenceOf(options.refused);
  try {
    const response = await signByPasskey(options.value);
    const answer = await api.stepUp({ body: { method: "passkey", response } });
    if (answer.ok) return null;
    return answer.refused.code === "SECOND_FACTOR_INVALID"
      ? "The passkey was not accepted. Try again."
      : sentenceOf(answer.refused);
  } catch (error) {
    if (error instanceof PasskeyError) return error.message;
    throw error;
  }
}
