/** A miner's webhook: news of its blocks, payments and workers, sent to a URL of its own. */
import { useState } from 'preact/hooks';
import { SignedForm } from './signed-form.tsx';
import { webhookWish } from './wishes.ts';

/** `address`: as the pool writes it. */
export function WebhookForm({ address }: { address: string }) {
  const [url, setUrl] = useState('');
  return (
    <SignedForm<{ secret: string | null }>
      title="Webhook"
      address={address}
      path={`miners/${encodeURIComponent(address)}/webhook`}
      label="webhook"
      example={{ url: '' }}
      wish={webhookWish(url.trim())}
      done={({ secret }) =>
        secret === null
          ? 'Taken away: nothing is sent any more.'
          : `Set. Requests are signed with this secret, which is shown only now: ${secret}`
      }
    >
      <p class="note">
        The pool sends a message to your URL when you find a block, when you are paid, and when a worker falls silent or
        comes back. The URL is shown to nobody. Empty takes it away.
      </p>
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
    </SignedForm>
  );
}
