/**
 * Settings that an operator changes without a restart. An edit overrides the options until it is undone, and the page
 * says so.
 */
import { useState } from 'preact/hooks';
import type { SettingsDocument } from '../../pool/api/operator/operator-documents.ts';
import { count } from '../format.ts';
import { word } from '../words/language.ts';
import type { Act } from './payout-queue.tsx';

type Setting = SettingsDocument['settings'][number];

export const Settings = ({ settings, act }: { settings: readonly Setting[]; act: Act }) => (
  <section class="card">
    <h2>{word('tab.settings')}</h2>
    <p class="note">{word('operator.settings_note')}</p>
    {settings.map((setting) => (
      <One key={setting.name} setting={setting} act={act} />
    ))}
  </section>
);

function One({ setting, act }: { setting: Setting; act: Act }) {
  const { name, value, file_value: file, edited, changes } = setting;
  const title = word(`operator.${name}`);
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
          {word(`operator.${name}_note`)}{' '}
          {changes.map((change) => (
            <strong key={change.from_slice}>
              {word('operator.announced', {
                value: change.value,
                slice: count(change.from_slice),
                height: count(change.from_height),
              })}{' '}
            </strong>
          ))}
          {edited && file !== null ? (
            <strong class="warn">{word('operator.changed_here', { value: file })}</strong>
          ) : null}
        </span>
      </div>
      <span class="pair">
        <button
          type="submit"
          aria-disabled={typed === undefined}
          aria-label={word('operator.change_what', { what: title })}
        >
          {word('operator.change')}
        </button>
        <button
          type="button"
          aria-disabled={!edited}
          onClick={() => edited && void act('settings', 'DELETE', { name })}
          aria-label={word(file === null ? 'operator.remove_what' : 'operator.undo_what', { what: title })}
        >
          {word(file === null ? 'operator.remove' : 'operator.undo')}
        </button>
      </span>
    </form>
  );
}
