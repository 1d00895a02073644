import type { ReactElement } from "react";
import { POLICY_FIELDS, type PolicyField, type TypedPolicy } from "../policy.ts";
import { AmountInput, CountInput } from "./amount.tsx";

interface PolicyFieldsProps {
  readonly value: TypedPolicy;
  readonly onChange: (value: TypedPolicy) => void;
  readonly errors: Partial<Record<PolicyField, string | undefined>>;
  readonly disabled?: boolean;
  /** Field that the form shows in another way. */
  readonly without?: PolicyField;
}

/** Fields of a budget policy. Empty means no limit. */
export function PolicyFields(props: PolicyFieldsProps): ReactElement {
  const { disabled = false, errors, onChange, value, without } = props;
  return (
    <div className="fields">
      {POLICY_FIELDS.filter(({ name }) => name !== without).map(({ about, kind, label, name, none }) => {
        const Field = kind === "amount" ? AmountInput : CountInput;
        return (
          <Field
            key={name}
            label={label}
            description={about ?? <span className="no-description">{"\u00a0"}</span>}
            placeholder={none ?? ""}
            value={value[name]}
            error={errors[name]}
            disabled={disabled}
            onChange={(typed) => onChange({ ...value, [name]: typed })}
          />
        );
      })}
    </div>
  );
}
