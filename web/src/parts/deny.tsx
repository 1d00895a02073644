import { Button, Group, Stack, Text, Textarea } from "@mantine/core";
import { type KeyboardEvent, type ReactElement, type SyntheticEvent, useState } from "react";
import { Modal } from "./dialog.tsx";
import { number } from "../format.ts";
import { REASONS } from "../words.ts";

export const FEEDBACK_CHARACTERS_MAX = 1_000;

/** Returns the length in characters, as the service counts them. */
export const lengthOf = (text: string): number => Array.from(text).length;

const isReason = (text: string): boolean => REASONS.some((reason) => reason === text);

/** Returns the feedback with a common reason, which replaces another such reason or follows the person's own words. */
export const withReason = (feedback: string, reason: string): string => {
  const own = feedback.trim();
  return own === "" || isReason(own) ? reason : `${own}\n${reason}`;
};

/** Returns why the feedback cannot be sent; undefined if it can. */
export function feedbackError(feedback: string): string | undefined {
  if (feedback.trim() === "") return "Say why: it is what the agent gets to read.";
  return lengthOf(feedback) > FEEDBACK_CHARACTERS_MAX ? "This is too long." : undefined;
}

/** Submits a field's form with Ctrl+Enter or ⌘+Enter. */
export function sendByKey(event: KeyboardEvent<HTMLTextAreaElement>): void {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  event.currentTarget.form?.requestSubmit();
}

interface DenyProps {
  readonly title: string;
  readonly verb?: string;
  readonly onDeny: (feedback: string) => void;
  readonly onClose: () => void;
}

export function Deny({ onClose, onDeny, title, verb = "Deny" }: DenyProps): ReactElement {
  const [feedback, setFeedback] = useState("");
  const [isSent, setSent] = useState(false);
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    setSent(true);
    if (feedbackError(feedback) === undefined) onDeny(feedback);
  };
  return (
    <Modal opened onClose={onClose} title={title} closeOnClickOutside={feedback.trim() === ""}>
      <form onSubmit={submit} noValidate>
        <Stack>
          <Stack gap={6}>
            <Text size="sm" fw={550}>
              Usual reasons
            </Text>
            {REASONS.map((reason) => (
              <Button
                key={reason}
                variant="default"
                justify="flex-start"
                className="reason"
                onClick={() => setFeedback(withReason(feedback, reason))}
              >
                {reason}
              </Button>
            ))}
          </Stack>
          <Textarea
            label="Reason (the agent reads this)"
            rows={4}
            value={feedback}
            data-autofocus
            onKeyDown={sendByKey}
            onChange={({ currentTarget }) => setFeedback(currentTarget.value)}
            description={`${number(lengthOf(feedback))} of ${number(FEEDBACK_CHARACTERS_MAX)} characters`}
            inputWrapperOrder={["label", "input", "description", "error"]}
            error={isSent ? feedbackError(feedback) : undefined}
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Back
            </Button>
            <Button type="submit" color="red">
              {verb}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
