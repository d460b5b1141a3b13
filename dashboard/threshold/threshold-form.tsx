/** A miner's own payout threshold. */
import { useState } from 'preact/hooks';
import { formatCoins, parseCoins } from '../../protocol/amount.ts';
import { outcomeOf, SignedForm } from './signed-form.tsx';
import { thresholdWish } from './wishes.ts';

const LABEL = 'payout threshold';

function atomsOf(coins: string): string | undefined {
  try {
    return parseCoins(coins.trim()).toString();
  } catch {
    return undefined;
  }
}

/** `address`: as the pool writes it. */
export function ThresholdForm({ address, minimum, onChange }: { address: string; minimum: string; onChange(): void }) {
  const [coins, setCoins] = useState(formatCoins(BigInt(minimum)).replace(/\.?0+$/, ''));
  const atoms = atomsOf(coins);
  return (
    <SignedForm<{ payout_min_atoms: string }>
      title="Payout threshold"
      address={address}
      path={`miners/${encodeURIComponent(address)}/payout-threshold`}
      label={LABEL}
      example={{ threshold_atoms: 'ATOMS' }}
      wish={atoms === undefined ? 'Enter an amount in coins, such as 1.25.' : thresholdWish(atoms)}
      done={({ payout_min_atoms: changed }) => {
        onChange();
        return `Changed: you will be paid when your balance reaches ${formatCoins(BigInt(changed))} coins.`;
      }}
    >
      <label>
        Minimum payout, in coins
        <input
          value={coins}
          inputmode="decimal"
          aria-invalid={atoms === undefined}
          aria-describedby={outcomeOf(LABEL)}
          autocomplete="off"
          onInput={(event) => setCoins(event.currentTarget.value)}
        />
      </label>
    </SignedForm>
  );
}
