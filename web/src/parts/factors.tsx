import { Button, Code, Group, Stack, Text, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactElement, type SyntheticEvent, useEffect, useRef, useState } from "react";
import { encode } from "uqr";
import type { Answer, Output } from "../../../src/client/types.ts";
import { useAction } from "../action.ts";
import { api } from "../api.ts";
import { createPasskey, PasskeyError } from "../passkeys.ts";
import { ME } from "../session.tsx";
import { CodeInput } from "./code-input.tsx";
import { Problem } from "./problem.tsx";
import { CopyIcon } from "./secret.tsx";

interface AddProps {
  readonly onDone: () => void;
  readonly onCancel: () => void;
}

/** Queries that enrolling a factor makes stale. */
const STALE = [ME, ["passkeys"]] as const;

const deviceName = (): string =>
  /iPhone|iPad|Android|Mac|Windows|Linux/.exec(navigator.userAgent)?.[0] ?? "This device";

export function AddPasskey({ onCancel, onDone }: AddProps): ReactElement {
  const [name, setName] = useState(deviceName);
  const [problem, setProblem] = useState("");
  const client = useQueryClient();
  const options = useAction(() => api.passkeyOptions());
  const enrol = useAction((response: Awaited<ReturnType<typeof createPasskey>>) =>
    api.enrollPasskey({ body: { name, response } }),
  );
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    setProblem("");
    const given = await options.run();
    if (given === null) return;
    try {
      if ((await enrol.run(await createPasskey(given))) === null) return;
    } catch (error) {
      if (!(error instanceof PasskeyError)) throw error;
      return setProblem(error.message);
    }
    for (const queryKey of STALE) await client.invalidateQueries({ queryKey });
    onDone();
  };
  return (
    <form onSubmit={(event) => void submit(event)} noValidate>
      <Stack>
        <Problem text={[problem, options.problem, enrol.problem].join(" ").trim()} />
        <TextInput
          label="Name of the passkey"
          description="A name to recognize it by."
          value={name}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel}>
            Back
          </Button>
          <Button type="submit" loading={options.isBusy || enrol.isBusy}>
            Create passkey
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Enrols an authenticator app: shows its secret as a QR code, then asks for a code. */
export function AddTotp({ onCancel, onDone }: AddProps): ReactElement {
  const [enrolment, setEnrolment] = useState<Output<"enrollTotp"> | null>(null);
  const [code, setCode] = useState("");
  const begin = useAction((): Promise<Answer<Output<"enrollTotp">>> => api.enrollTotp());
  const confirm = useAction((typed: string) => api.confirmTotp({ body: { code: typed } }), { stale: STALE });
  const begun = useRef(false);
  useEffect(() => {
    if (begun.current) return;
    begun.current = true;
    void begin.run().then(setEnrolment);
  });
  const send = async (typed: string): Promise<void> => {
    if ((await confirm.run(typed)) === null) return setCode("");
    onDone();
  };
  if (enrolment === null) {
    return (
      <Stack>
        <Problem text={begin.problem} />
        <Button variant="default" onClick={onCancel}>
          Back
        </Button>
      </Stack>
    );
  }
  return (
    <Stack>
      <Problem text={confirm.problem} />
      <Text size="sm">Scan this with your authenticator app, or type the secret into it.</Text>
      <Group wrap="nowrap" align="center">
        <QrCode text={enrolment.otpauthUrl} />
        <Group gap={4} wrap="nowrap">
          <Code className="break" id="totp-secret">
            {enrolment.secret}
          </Code>
          <CopyIcon text={enrolment.secret} label="Copy the secret" />
        </Group>
      </Group>
      <CodeInput
        label="The six digits that it shows"
        value={code}
        onChange={setCode}
        onComplete={(typed) => void send(typed)}
        isBusy={confirm.isBusy}
        error={confirm.problem === "" ? undefined : ""}
      />
      <Group justify="flex-end">
        <Button variant="default" onClick={onCancel}>
          Back
        </Button>
      </Group>
    </Stack>
  );
}

function QrCode({ text }: { readonly text: string }): ReactElement {
  const { data, size } = encode(text, { border: 2 });
  const path = data
    .flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : "")))
    .join("");
  return (
    <svg className="qr" role="img" aria-label="The secret as a QR code" viewBox={`0 0 ${size} ${size}`}>
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#111" />
    </svg>
  );
}
