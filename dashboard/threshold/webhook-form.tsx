/** News of a miner's blocks, payments and workers, sent to a URL of its own: a webhook, or a channel of Discord, Telegram or ntfy. */
import { useState } from 'preact/hooks';
import type { NotificationsDocument } from '../../pool/api/documents.ts';
import { CHANNELS, type Channel } from '../../protocol/notices.ts';
import { ago } from '../format.ts';
import { NewsChoice, useNewsChoice } from './news-choice.tsx';
import { SignedForm } from './signed-form.tsx';
import { webhookWish } from './wishes.ts';

const PLACES: Readonly<Record<Channel, { readonly name: string; readonly hint: string }>> = {
  webhook: { name: 'Webhook', hint: 'A URL of your own program: it gets JSON, signed with a secret of yours.' },
  discord: {
    name: 'Discord',
    hint: 'In the settings of a channel: Integrations, Webhooks, New webhook, Copy webhook URL.',
  },
  telegram: {
    name: 'Telegram',
    hint: 'Make a bot with @BotFather and write to it once: https://api.telegram.org/botTOKEN/sendMessage?chat_id=CHAT',
  },
  ntfy: {
    name: 'ntfy',
    hint: 'The URL of your topic, such as https://ntfy.sh/TOPIC. Who knows its name can read it: choose a long one.',
  },
};

const FAILURES = {
  refused: 'your receiver answered with an error',
  unreachable: 'your receiver could not be reached',
} as const;

function stateText(
  { state, failure, ...at }: NotificationsDocument[Channel],
  name: string,
  now: number,
): string | undefined {
  const failed = `${failure === null ? 'it failed' : FAILURES[failure]} (${ago(at.last_failure_millis, now)})`;
  const last = at.last_success_millis === null ? '' : ` Last success: ${ago(at.last_success_millis, now)}.`;
  switch (state) {
    case 'none':
      return undefined;
    case 'waiting':
      return `${name} is set; its first message has not been accepted yet.`;
    case 'working':
      return `${name} works.${last}`;
    case 'failing':
      return `${name} fails: ${failed}.${last}`;
    case 'taken_away':
      return `${name} was removed: ${failed}. Set it again when your receiver works.`;
  }
}

/** `address`: as the pool writes it. */
export function WebhookForm({ address, states, now }: { address: string; states: NotificationsDocument; now: number }) {
  const [channel, setChannel] = useState<Channel>('webhook');
  const [url, setUrl] = useState('');
  const news = useNewsChoice();
  const { name, hint } = PLACES[channel];
  return (
    <SignedForm<{ secret: string | null }>
      title="Notices"
      address={address}
      path={`miners/${encodeURIComponent(address)}/webhook`}
      label="webhook"
      example={{ channel, url: 'YOUR-URL', events: news.chosen }}
      wish={webhookWish(channel, url.trim(), news)}
      done={({ secret }) =>
        news.isRemoved
          ? 'Removed: nothing more is sent.'
          : secret === null
            ? 'Saved. A first message is on its way.'
            : `Saved. Requests are signed with this secret; copy it now, it is not shown again: ${secret}`
      }
    >
      <p class="note">
        The pool sends a message to your URL when you find a block, when you are paid, and when a worker falls silent or
        comes back. The URL is never shown, not even here: to change what is sent, enter it again.
      </p>
      {CHANNELS.map((one) => {
        const known = stateText(states[one], PLACES[one].name, now);
        return known === undefined ? null : (
          <p key={one} class="note">
            {known}
          </p>
        );
      })}
      <label>
        Send to
        <select value={channel} onChange={(event) => setChannel(event.currentTarget.value as Channel)}>
          {CHANNELS.map((one) => (
            <option key={one} value={one}>
              {PLACES[one].name}
            </option>
          ))}
        </select>
      </label>
      <p class="note">{hint}</p>
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
      <NewsChoice {...news} what={channel === 'webhook' ? 'the webhook' : name} />
    </SignedForm>
  );
}
