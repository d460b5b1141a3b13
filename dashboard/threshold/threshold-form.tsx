/** A miner's own payout threshold. */

import { useState } from 'preact/hooks';
import { parseCoins } from '../../protocol/amount.ts';
import { coins as coinsOf, count, plainNumber } from '../format.ts';
import { word } from '../words/language.ts';
import { outcomeOf, SignedForm } from './signed-form.tsx';
import { thresholdWish } from './wishes.ts';

const NAME = 'payout-threshold';

function atomsOf(coins: string): string | undefined {
  try {
    return parseCoins(plainNumber(coins) ?? '').toString();
  } catch {
    return undefined;
  }
}

/** `address`: as the pool writes it. */
export function ThresholdForm({ address, minimum, onChange }: { address: string; minimum: string; onChange(): void }) {
  const [typed, setTyped] = useState(coinsOf(minimum).replace(/\D0+$/, ''));
  const atoms = atomsOf(typed);
  return (
    <SignedForm<{ payout_min_atoms: string }>
      title={word('threshold.title')}
      name={NAME}
      address={address}
      path={`miners/${encodeURIComponent(address)}/payout-threshold`}
      label={word('threshold.label')}
      example={{ threshold_atoms: 'ATOMS' }}
      wish={atoms === undefined ? word('threshold.enter', { example: count(1.25) }) : thresholdWish(atoms)}
      done={({ payout_min_atoms: changed }) => {
        onChange();
        return word('threshold.done', { coins: coinsOf(changed) });
      }}
    >
      <label>
        {word('threshold.minimum')}
        <input
          value={typed}
          inputmode="decimal"
          aria-invalid={atoms === undefined}
          aria-describedby={outcomeOf(NAME)}
          autocomplete="off"
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      </label>
    </SignedForm>
  );
}
