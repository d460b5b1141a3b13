/** Which news a miner wants. */

import { useState } from 'preact/hooks';
import { word } from '../words/language.ts';

const NEWS = [
  { group: 'blocks', label: 'choice.blocks' },
  { group: 'payments', label: 'choice.payments' },
  { group: 'workers', label: 'choice.workers' },
] as const;

export function useNewsChoice() {
  const [left, setLeft] = useState<readonly string[]>([]);
  const [isRemoved, setRemoved] = useState(false);
  const chosen = NEWS.map(({ group }) => group).filter((group) => !left.includes(group));
  const change = (group: string, isChosen: boolean) =>
    setLeft(isChosen ? left.filter((one) => one !== group) : [...left, group]);
  return { chosen, change, isRemoved, setRemoved };
}

/** `what` is set now, perhaps, and can be removed. */
export function NewsChoice({
  chosen,
  change,
  isRemoved,
  setRemoved,
  what,
}: ReturnType<typeof useNewsChoice> & { what: string }) {
  return (
    <>
      <fieldset class="row full" disabled={isRemoved}>
        <legend>{word('choice.about')}</legend>
        {NEWS.map(({ group, label }) => (
          <label key={group} class="inline">
            <input
              type="checkbox"
              checked={(chosen as readonly string[]).includes(group)}
              onChange={(event) => change(group, event.currentTarget.checked)}
            />
            {word(label)}
          </label>
        ))}
      </fieldset>
      <label class="inline">
        <input type="checkbox" checked={isRemoved} onChange={(event) => setRemoved(event.currentTarget.checked)} />
        {word('choice.remove', { what })}
      </label>
    </>
  );
}
