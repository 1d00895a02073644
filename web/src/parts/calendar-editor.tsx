import { Button, Group, NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { valueOf } from "../../../src/client/client.ts";
import type { Output } from "../../../src/client/types.ts";
import { useAction } from "../action.ts";
import { api } from "../api.ts";
import { Card, Waiting } from "./parts.tsx";
import { Failed, Problem } from "./problem.tsx";
import { Try } from "./try.tsx";

type Calendar = Output<"getProjectCalendar">;

const WEEK_STARTS: readonly { readonly value: Calendar["weekStartsOn"]; readonly label: string }[] = [
  { value: "mon", label: "Monday" },
  { value: "tue", label: "Tuesday" },
  { value: "wed", label: "Wednesday" },
  { value: "thu", label: "Thursday" },
  { value: "fri", label: "Friday" },
  { value: "sat", label: "Saturday" },
  { value: "sun", label: "Sunday" },
];

const MONTH = new Intl.DateTimeFormat(undefined, { month: "long", timeZone: "UTC" });
const MONTHS = Array.from({ length: 12 }, (_, index) => ({
  value: String(index + 1),
  label: MONTH.format(Date.UTC(2026, index, 15)),
}));
/** Days that every month has. */
const DAYS = Array.from({ length: 28 }, (_, index) => String(index + 1));

const FIELDS = ["timezone", "resetTime", "weekStartsOn", "monthStartsOn", "yearStartsIn"] as const;

interface EditorProps {
  readonly projectId: string;
  readonly isReadOnly: boolean;
}

/** Editor of the calendar by which a project's limits reset. */
export function CalendarEditor({ isReadOnly, projectId }: EditorProps): ReactElement {
  const queryKey = ["budgets", "calendar", projectId];
  const { data, error } = useQuery({
    queryKey,
    queryFn: async ({ signal }) => valueOf(await api.getProjectCalendar({ id: projectId }, { signal })),
  });
  if (data === undefined) return error === null ? <Waiting /> : <Failed error={error} />;
  // A new version resets the form.
  return <Form key={data.version} projectId={projectId} current={data} isReadOnly={isReadOnly} />;
}

function Form({
  current,
  isReadOnly,
  projectId,
}: EditorProps & { readonly current: Calendar }): ReactElement {
  const [draft, setDraft] = useState(current);
  const save = useAction((body: Calendar) => api.setProjectCalendar({ id: projectId, body }), {
    stale: [["budgets"], ["agents"]],
    fields: FIELDS,
  });
  const isChanged = FIELDS.some((name) => draft[name] !== current[name]);
  const set = (change: Partial<Calendar>): void => setDraft((now) => ({ ...now, ...change }));
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    void save.run(draft);
  };
  return (
    <Card title="Calendar" about="When days, weeks, months, quarters and years begin for limits by period.">
      <form onSubmit={submit} noValidate>
        <Stack>
          <Problem text={save.problem} />
          <div className="fields">
            <TextInput
              label="Time zone of limits"
              value={draft.timezone}
              error={save.at("timezone")}
              disabled={isReadOnly}
              onChange={({ currentTarget }) => set({ timezone: currentTarget.value })}
            />
            <TextInput
              label="Time of day"
              value={draft.resetTime}
              error={save.at("resetTime")}
              disabled={isReadOnly}
              onChange={({ currentTarget }) => set({ resetTime: currentTarget.value })}
            />
            <NativeSelect
              label="Weeks begin on"
              data={[...WEEK_STARTS]}
              value={draft.weekStartsOn}
              disabled={isReadOnly}
              onChange={({ currentTarget }) =>
                set({ weekStartsOn: WEEK_STARTS[currentTarget.selectedIndex]?.value ?? draft.weekStartsOn })
              }
            />
            <NativeSelect
              label="Months begin on day"
              data={DAYS}
              value={String(draft.monthStartsOn)}
              disabled={isReadOnly}
              onChange={({ currentTarget }) => set({ monthStartsOn: Number(currentTarget.value) })}
            />
            <NativeSelect
              label="Years begin in"
              data={MONTHS}
              value={String(draft.yearStartsIn)}
              disabled={isReadOnly}
              onChange={({ currentTarget }) => set({ yearStartsIn: Number(currentTarget.value) })}
            />
          </div>
          <Text size="xs" c="dimmed">
            Quarters begin every three months from the start of the year. After a change, what is counted
            stays counted until the new calendar’s next beginning.
          </Text>
          {isReadOnly ? null : (
            <Group justify="flex-end">
              <Button
                variant="default"
                disabled={!isChanged || save.isBusy}
                onClick={() => setDraft(current)}
              >
                Discard changes
              </Button>
              <Try
                isDisabled={false}
                onTry={(range) => {
                  const { version: _version, ...calendar } = draft;
                  return api.simulateProjectCalendar({ id: projectId, body: { ...calendar, range } });
                }}
              />
              <Button type="submit" disabled={!isChanged} loading={save.isBusy}>
                Save calendar
              </Button>
            </Group>
          )}
        </Stack>
      </form>
    </Card>
  );
}
