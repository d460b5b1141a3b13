/** What an operator changes without a restart. An edit counts instead of the options until it is taken back, and the page says so. */
import { useState } from 'preact/hooks';
import type { SettingsDocument } from '../../pool/api/operator-documents.ts';
import { count } from '../format.ts';
import type { Act } from './payout-queue.tsx';

type Setting = SettingsDocument['settings'][number];

const WORDS: Readonly<Record<Setting['name'], { readonly title: string; readonly note: string }>> = {
  pool_name: {
    title: 'Name of the pool',
    note: 'Pages show it at once; miners and blocks have it after the next start of each instance.',
  },
  payout_min: {
    title: 'Minimum payout, in coins',
    note: 'Counts for balances that are not in a payout yet. Miners who chose a threshold of their own keep it.',
  },
  fee_pplns: {
    title: 'Fee of PPLNS, in percent',
    note: 'A lower fee holds from the next slice on, a higher one a day later; the pool’s page announces it.',
  },
  fee_solo: { title: 'Fee of solo, in percent', note: 'As above.' },
  notice: { title: 'Notice to everybody', note: 'Shown on every page until it is taken away.' },
  pause_note: {
    title: 'Note while payouts are paused',
    note: 'Shown to miners beside the news that payouts are paused; resuming takes it away.',
  },
};

export const Settings = ({ settings, act }: { settings: readonly Setting[]; act: Act }) => (
  <section class="card">
    <h2>Settings</h2>
    <p class="note">
      Changed without a restart. A change counts instead of the options and the config file, in all instances and after
      restarts, until you take it back. Each is listed below under ‘What was done’.
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
  const send = (event: Event) => {
    event.preventDefault();
    const wanted = (typed ?? value ?? '').trim();
    if (wanted === '') act('settings', 'DELETE', { name })();
    else act('settings', 'POST', { name, value: wanted })();
    setTyped(undefined);
  };
  return (
    <form class="row" onSubmit={send} data-setting={name}>
      <label class="grow">
        {title}
        <input
          maxLength={500}
          value={typed ?? value ?? ''}
          autocomplete="off"
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <span class="note">
          {note}{' '}
          {changes.map((change) => (
            <strong key={change.from_slice}>
              Announced: {change.value} from slice {count(change.from_slice)} (cut {count(change.from_height)}) on.{' '}
            </strong>
          ))}
          {edited && file !== null ? <strong class="warn">Changed here; the options say {file}.</strong> : null}
        </span>
      </label>
      <button type="submit" disabled={typed === undefined}>
        Change
      </button>
      <button
        type="button"
        disabled={!edited}
        onClick={act('settings', 'DELETE', { name })}
        aria-label={`${file === null ? 'Take away' : 'Back to the options'}: ${title}`}
      >
        {file === null ? 'Take away' : 'Back to the options'}
      </button>
    </form>
  );
}
