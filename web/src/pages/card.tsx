import { Anchor, Button, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { type ReactElement, useEffect, useRef, useState } from "react";
import { valueOf } from "../../../src/client/client.ts";
import { useAction } from "../action.ts";
import { api } from "../api.ts";
import { Entrance } from "../entrance.tsx";
import { exactMoney, onTheWall } from "../format.ts";
import { Icon } from "../icons.tsx";
import { CARD_PARTS, showCard } from "../issuer-script.ts";
import { Fact, Facts, Waiting, Written } from "../parts/parts.tsx";
import { Failed, Problem } from "../parts/problem.tsx";
import { payeeIn } from "../words.ts";

/**
 * Page that shows a payment's card. It is a document of its own, because only its own content policy admits the
 * issuer's frames.
 */
export function CardPage(): ReactElement {
  const { id } = useParams({ from: "/alone/cards/$id" });
  useEffect(() => {
    document.title = "Card · Agent Spending Control";
  }, []);
  const { data, error } = useQuery({
    queryKey: ["transactions", "story", id],
    queryFn: async ({ signal }) => valueOf(await api.getTransactionExplanation({ id }, { signal })),
  });
  return (
    <Entrance
      title="Card of a payment"
      foot={<Anchor href={`/transactions?open=${id}`}>To the payment</Anchor>}
    >
      {data === undefined ? (
        error === null ? (
          <Waiting lines={3} />
        ) : (
          <Failed error={error} />
        )
      ) : (
        <Stack>
          <Facts>
            <Fact label="Amount">{exactMoney(data.transaction)}</Fact>
            <Fact label="To">
              <Written text={payeeIn(data.transaction)} />
            </Fact>
            {data.card === null ? null : (
              <>
                <Fact label="Card">
                  ends in <span className="mono">{data.card.last4}</span>
                </Fact>
                <Fact label="Waits for its first charge until">{onTheWall(data.card.readyUntil)}</Fact>
              </>
            )}
          </Facts>
          {data.card === null ? (
            <Text size="sm">This payment has no card of its own.</Text>
          ) : (
            <Shown id={id} />
          )}
        </Stack>
      )}
    </Entrance>
  );
}

function Shown({ id }: { readonly id: string }): ReactElement {
  const number = useRef<HTMLDivElement>(null);
  const expiry = useRef<HTMLDivElement>(null);
  const code = useRef<HTMLDivElement>(null);
  const [problem, setProblem] = useState("");
  const [isShown, setShown] = useState(false);
  const show = useAction(() => {
    if (number.current === null || expiry.current === null || code.current === null)
      throw new Error("there is no place for the card");
    return showCard(id, { number: number.current, expiry: expiry.current, code: code.current });
  });
  const run = async (): Promise<void> => {
    setProblem("");
    try {
      setShown((await show.run()) !== null);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <Stack>
      <Problem text={show.problem === "" ? problem : show.problem} />
      <div hidden={!isShown}>
        <Facts>
          <Fact label={CARD_PARTS.number.label}>
            <div ref={number} data-part="number" />
          </Fact>
          <Fact label={CARD_PARTS.expiry.label}>
            <div ref={expiry} data-part="expiry" />
          </Fact>
          <Fact label={CARD_PARTS.code.label}>
            <div ref={code} data-part="code" />
          </Fact>
        </Facts>
      </div>
      <Text size="sm" c="dimmed">
        The issuer shows number and code in frames of its own. Give them to nobody but the merchant.
      </Text>
      {isShown ? null : (
        <Button leftSection={<Icon name="card" />} loading={show.isBusy} onClick={() => void run()}>
          Show number and code
        </Button>
      )}
    </Stack>
  );
}
