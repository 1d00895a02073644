import { Button, Fieldset, Stack, Textarea } from "@mantine/core";
import { type ReactElement, type SyntheticEvent, useEffect, useRef, useState } from "react";
import { number } from "../format.ts";
import { REASONS } from "../words.ts";
import { FEEDBACK_CHARACTERS_MAX, lengthOf, withReason, feedbackError, sendByKey } from "./deny.tsx";

interface DenialProps {
  readonly onDeny: (feedback: string) => void;
  readonly onBack: () => void;
}

export function Denial({ onBack, onDeny }: DenialProps): ReactElement {
  const [feedback, setFeedback] = useState("");
  const [isSent, setSent] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => area.current?.focus(), []);
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    setSent(true);
    if (feedbackError(feedback) === undefined) onDeny(feedback);
    else area.current?.focus();
  };
  return (
    <form id="denial" method="post" noValidate onSubmit={submit} className="card card-body">
      <Stack>
        <Fieldset legend="Usual reasons" variant="unstyled">
          <Stack gap={6}>
            {REASONS.map((reason) => (
              <Button
                key={reason}
                variant="default"
                justify="flex-start"
                className="reason"
                onClick={() => {
                  setFeedback(withReason(feedback, reason));
                  area.current?.focus();
                }}
              >
                {reason}
              </Button>
            ))}
          </Stack>
        </Fieldset>
        <Textarea
          id="feedback"
          ref={area}
          label="Reason (the agent reads this)"
          rows={4}
          value={feedback}
          onKeyDown={sendByKey}
          onChange={({ currentTarget }) => setFeedback(currentTarget.value)}
          description={`${number(lengthOf(feedback))} of ${number(FEEDBACK_CHARACTERS_MAX)} characters`}
          descriptionProps={{ id: "feedback-count" }}
          errorProps={{ id: "feedback-problem" }}
          inputWrapperOrder={["label", "input", "description", "error"]}
          error={isSent ? feedbackError(feedback) : undefined}
        />
        <div className="choice">
          <Button type="submit" size="lg" color="red">
            Deny the payment
          </Button>
          <Button size="lg" variant="default" onClick={onBack}>
            Back
          </Button>
        </div>
      </Stack>
    </form>
  );
}
