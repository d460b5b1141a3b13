/** A miner's e-mail address: the same news as by a webhook, gathered into a few mails. */
import { useState } from 'preact/hooks';
import { NewsChoice, useNewsChoice } from './news-choice.tsx';
import { SignedForm } from './signed-form.tsx';
import { mailWish } from './wishes.ts';

const DONE = {
  off: 'Removed: no more e-mails are sent.',
  unconfirmed: 'Saved. You will get an e-mail with a link; nothing else is sent until you confirm the address with it.',
  on: 'Changed. The address was confirmed before.',
} as const;

/** `address`: as the pool writes it. */
export function MailForm({ address }: { address: string }) {
  const [email, setEmail] = useState('');
  const news = useNewsChoice();
  return (
    <SignedForm<{ state: keyof typeof DONE }>
      title="E-mail"
      address={address}
      path={`miners/${encodeURIComponent(address)}/mail`}
      label="e-mail"
      example={{ email: 'YOUR-E-MAIL', events: news.chosen }}
      wish={mailWish(email.trim(), news)}
      done={({ state }) => DONE[state]}
    >
      <p class="note">
        The pool mails you when you find a block, when you are paid, and when a worker falls silent or comes back, at
        most four times an hour. The address is never shown, not even here: to change what is sent, enter it again.
        Every e-mail has a link that removes the address.
      </p>
      <label>
        E-mail address
        <input
          type="email"
          value={email}
          maxLength={100}
          autocomplete="email"
          spellcheck={false}
          onInput={(event) => setEmail(event.currentTarget.value)}
        />
      </label>
      <NewsChoice {...news} what="the e-mail address" />
    </SignedForm>
  );
}
