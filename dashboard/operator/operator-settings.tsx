/**
 * Settings that an operator changes without a restart. An edit overrides the options until it is undone, and the page
 * says so.
 */
import { useState } from 'preact/hooks';
import type { SettingsDocument } from '../../pool/api/operator/operator-documents.ts';
import { count } from '../format.ts';
import type { Act } from './payout-queue.tsx';

type Setting = SettingsDocument['settings'][number];

const WORDS: Readonly<Record<Setting['name'], { readonly title: string; readonly note: string }>> = {
  pool_name: {
    title: 'Pool name',
    note: 'Shown on the pages at once; miners and blocks get it after the next restart of each instance.',
  },
  payout_min: {
    title: 'Minimum payout, in coins',
    note: 'Applies to balances that are not in a payout yet. Miners who set their own threshold keep it.',
  },
  fee_pplns: {
    title: 'PPLNS fee, in percent',
    note: 'A lower fee applies from the next slice, a higher one a day later; the pool’s page announces it.',
  },
  fee_solo: { title: 'Solo fee, in percent', note: 'As above.' },
  notice: { title: 'Notice to everybody', note: 'Shown on every page until you remove it.' },
  pause_note: {
    title: 'Note while payouts are paused',
    note: 'Shown to miners while payouts are paused; removed when they resume.',
  },
};

export const Settings = ({ settings, act }: { settings: readonly Setting[]; act: Act }) => (
  <section class="card">
    <h2>Settings</h2>
    <p class="note">
      Changed without a restart. A change replaces the option or the entry of the config file, in all instances and
      after restarts, until you undo it. Each change is listed below in the operator log.
    </p>
    {settings.map((setting) => (
      <One key={setting.name} setting={setting} act={act} />
    ))}
  </section>
);

function One({ setting, act }: { setting: Setting; act: Act }) {
  const { name, value, file_value: file, edited, changes } = setting;
  const { title, note } = WORDS[name];
  const [typed, setTyped] = useState<string>();
  const send = async (event: Event) => {
    event.preventDefault();
    if (typed === undefined) return;
    const wanted = typed.trim();
    const isDone = await (wanted === ''
      ? act('settings', 'DELETE', { name })
      : act('settings', 'POST', { name, value: wanted }));
    // What was refused can be put right; what was typed meanwhile stays.
    if (isDone) setTyped((now) => (now === typed ? undefined : now));
  };
  return (
    <form class="row" onSubmit={send} data-setting={name}>
      <div class="grow">
        <label>
          {title}
          <input
            maxLength={500}
            value={typed ?? value ?? ''}
            autocomplete="off"
            aria-describedby={`note-${name}`}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        <span id={`note-${name}`} class="note below">
          {note}{' '}
          {changes.map((change) => (
            <strong key={change.from_slice}>
              Announced: {change.value} from slice {count(change.from_slice)} (cut {count(change.from_height)}) on.{' '}
            </strong>
          ))}
          {edited && file !== null ? <strong class="warn">Changed here; the options say ‘{file}’.</strong> : null}
        </span>
      </div>
      <button type="submit" aria-disabled={typed === undefined} aria-label={`Change: ${title}`}>
        Change
      </button>
      <button
        type="button"
        aria-disabled={!edited}
        onClick={() => edited && void act('settings', 'DELETE', { name })}
        aria-label={`${file === null ? 'Remove' : 'Undo'}: ${title}`}
      >
        {file === null ? 'Remove' : 'Undo'}
      </button>
    </form>
  );
}
