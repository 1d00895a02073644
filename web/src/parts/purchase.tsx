import type { ReactElement } from "react";
import type { Transaction } from "../words.ts";
import { Fact, Written } from "./parts.tsx";

type Purchase = Pick<Transaction, "protocol" | "receipt" | "resource">;

interface PurchaseProps {
  readonly purchase: Purchase;
  /** Address that is paid. */
  readonly payee: string;
}

const PROTOCOLS = { "x402/2": "x402", "x402/1": "x402, version 1", mpp: "MPP" } as const;

/** Shows what was bought on the web, and from whom. Renders nothing for any other payment. */
export function PurchaseFacts({ payee, purchase }: PurchaseProps): ReactElement | null {
  const { protocol, receipt, resource } = purchase;
  if (resource === null) return null;
  return (
    <>
      <Fact label="For">
        <Written text={resource} />
      </Fact>
      <Fact label="Paid to">
        <span className="mono break">{payee}</span>
      </Fact>
      {protocol === null ? null : <Fact label="Protocol">{PROTOCOLS[protocol]}</Fact>}
      {receipt === null ? null : (
        <Fact label="Seller’s receipt">
          <span className="mono break">
            <Written text={receipt} />
          </span>
        </Fact>
      )}
    </>
  );
}
