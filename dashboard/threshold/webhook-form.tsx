/** A miner's webhook: news of its blocks, payments and workers, sent to a URL of its own. */
import { useState } from 'preact/hooks';
import type { NotificationsDocument } from '../../pool/api/documents.ts';
import { ago } from '../format.ts';
import { NewsChoice, useNewsChoice } from './news-choice.tsx';
import { SignedForm } from './signed-form.tsx';
import { webhookWish } from './wishes.ts';

const FAILURES = {
  refused: 'your receiver answered with an error',
  unreachable: 'your receiver could not be reached',
} as const;

function stateText({ state, failure, ...at }: NotificationsDocument['webhook'], now: number): string | undefined {
  const failed = `${failure === null ? 'it failed' : FAILURES[failure]} (${ago(at.last_failure_millis, now)})`;
  const last = at.last_success_millis === null ? '' : ` Last success: ${ago(at.last_success_millis, now)}.`;
  switch (state) {
    case 'none':
      return undefined;
    case 'waiting':
      return 'A webhook is set; its first message has not been accepted yet.';
    case 'working':
      return `The webhook works.${last}`;
    case 'failing':
      return `The webhook fails: ${failed}.${last}`;
    case 'taken_away':
      return `The webhook was removed: ${failed}. Set it again when your receiver works.`;
  }
}

/** `address`: as the pool writes it. */
export function WebhookForm({
  address,
  state,
  now,
}: {
  address: string;
  state: NotificationsDocument['webhook'];
  now: number;
}) {
  const [url, setUrl] = useState('');
  const news = useNewsChoice();
  const known = stateText(state, now);
  return (
    <SignedForm<{ secret: string | null }>
      title="Webhook"
      address={address}
      path={`miners/${encodeURIComponent(address)}/webhook`}
      label="webhook"
      example={{ url: 'YOUR-URL', events: news.chosen }}
      wish={webhookWish(url.trim(), news)}
      done={({ secret }) =>
        secret === null
          ? 'Removed: nothing more is sent.'
          : `Saved. Requests are signed with this secret; copy it now, it is not shown again: ${secret}`
      }
    >
      <p class="note">
        The pool sends a message to your URL when you find a block, when you are paid, and when a worker falls silent or
        comes back. The URL is never shown, not even here: to change what is sent, enter it again.
      </p>
      {known === undefined ? null : <p class="note">{known}</p>}
      <label>
        URL
        <input
          type="url"
          value={url}
          maxLength={110}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => setUrl(event.currentTarget.value)}
        />
      </label>
      <NewsChoice {...news} what="the webhook" />
    </SignedForm>
  );
}
