/** News of a miner's blocks, payments and workers, sent to a URL of its own: a webhook, or a channel of Discord, Telegram or ntfy. */

import { useState } from 'preact/hooks';
import type { NotificationsDocument } from '../../pool/api/documents.ts';
import { CHANNELS, type Channel } from '../../protocol/notices.ts';
import { ago } from '../format.ts';
import { word } from '../words/language.ts';
import { NewsChoice, useNewsChoice } from './news-choice.tsx';
import { SignedForm } from './signed-form.tsx';
import { webhookWish } from './wishes.ts';

const PLACES: Readonly<Record<Channel, { readonly name: string; readonly example?: string }>> = {
  webhook: { name: 'Webhook' },
  discord: { name: 'Discord' },
  telegram: { name: 'Telegram', example: 'https://api.telegram.org/botTOKEN/sendMessage?chat_id=CHAT' },
  ntfy: { name: 'ntfy', example: 'https://ntfy.sh/TOPIC' },
};

function stateText(
  { state, failure, ...at }: NotificationsDocument[Channel],
  name: string,
  now: number,
): string | undefined {
  const failed = {
    name,
    failure: word(`notice.${failure ?? 'failed'}`),
    ago: ago(at.last_failure_millis, now),
  };
  const last =
    at.last_success_millis === null ? '' : ` ${word('notice.last_success', { ago: ago(at.last_success_millis, now) })}`;
  switch (state) {
    case 'none':
      return undefined;
    case 'waiting':
      return word('notice.waiting', { name });
    case 'working':
      return `${word('notice.working', { name })}${last}`;
    case 'failing':
      return `${word('notice.failing', failed)}${last}`;
    case 'taken_away':
      return word('notice.taken_away', failed);
  }
}

/** `address`: as the pool writes it. */
export function WebhookForm({ address, states, now }: { address: string; states: NotificationsDocument; now: number }) {
  const [channel, setChannel] = useState<Channel>('webhook');
  const [url, setUrl] = useState('');
  const news = useNewsChoice();
  const { name, example = '' } = PLACES[channel];
  return (
    <SignedForm<{ secret: string | null }>
      title={word('notice.title')}
      name="webhook"
      address={address}
      path={`miners/${encodeURIComponent(address)}/webhook`}
      label={word('notice.label')}
      example={{ channel, url: 'YOUR-URL', events: news.chosen }}
      wish={webhookWish(channel, url.trim(), news)}
      done={({ secret }) =>
        news.isRemoved
          ? word('notice.removed')
          : secret === null
            ? word('notice.saved')
            : word('notice.secret', { secret })
      }
    >
      <p class="note">{word('notice.explained')}</p>
      {CHANNELS.map((one) => {
        const known = stateText(states[one], PLACES[one].name, now);
        return known === undefined ? null : (
          <p key={one} class="note">
            {known}
          </p>
        );
      })}
      <label>
        {word('notice.send_to')}
        <select value={channel} onChange={(event) => setChannel(event.currentTarget.value as Channel)}>
          {CHANNELS.map((one) => (
            <option key={one} value={one}>
              {PLACES[one].name}
            </option>
          ))}
        </select>
      </label>
      <p class="note">{word(`notice.${channel}_hint`, { url: example })}</p>
      <label>
        URL
        <input
          type="url"
          value={url}
          maxLength={160}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => setUrl(event.currentTarget.value)}
        />
      </label>
      <NewsChoice {...news} what={channel === 'webhook' ? word('notice.the_webhook') : name} />
    </SignedForm>
  );
}
