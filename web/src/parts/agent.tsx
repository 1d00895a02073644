import type { ReactElement } from "react";
import { asWritten } from "../format.ts";
import type { Agent } from "../words.ts";
import { BudgetBar } from "./parts.tsx";

const HUES = 12;

/** Tile with an agent's first letter, or with its own symbol. */
export function AgentMark({
  agent,
  size = 34,
}: {
  readonly agent: Pick<Agent, "id" | "name" | "appearance">;
  readonly size?: number;
}): ReactElement {
  const { appearance, id, name } = agent;
  const hue = (parseInt(id.slice(-2), 16) % HUES) * (360 / HUES);
  const sign =
    appearance !== null && /\p{Extended_Pictographic}/u.test(appearance.icon) ? appearance.icon : null;
  const letter = Array.from(asWritten(name))[0]?.toUpperCase() ?? "?";
  return (
    <svg className="mark" aria-hidden="true" width={size} height={size} viewBox="0 0 34 34">
      <rect width="34" height="34" rx="9" fill={appearance?.color ?? `hsl(${hue} 55% 42%)`} />
      <text x="17" y="22.5" textAnchor="middle" fill="#fff" fontSize="15" fontWeight="650">
        {sign ?? letter}
      </text>
    </svg>
  );
}

export const Usage = ({ agent }: { readonly agent: Agent }): ReactElement => (
  <BudgetBar
    label="Used"
    limitCents={agent.budgetCents}
    spentCents={agent.spentCents}
    reservedCents={agent.reservedCents}
  />
);
