/** A miner's e-mail address: the same news as by a webhook, gathered into a few mails. */

import { useState } from 'preact/hooks';
import { word } from '../words/language.ts';
import { NewsChoice, useNewsChoice } from './news-choice.tsx';
import { SignedForm } from './signed-form.tsx';
import { mailWish } from './wishes.ts';

const DONE = { off: 'mail.removed', unconfirmed: 'mail.unconfirmed', on: 'mail.on' } as const;

/** `address`: as the pool writes it. */
export function MailForm({ address }: { address: string }) {
  const [email, setEmail] = useState('');
  const news = useNewsChoice();
  return (
    <SignedForm<{ state: keyof typeof DONE }>
      title={word('mail.title')}
      name="e-mail"
      address={address}
      path={`miners/${encodeURIComponent(address)}/mail`}
      label={word('mail.label')}
      example={{ email: 'YOUR-E-MAIL', events: news.chosen }}
      wish={mailWish(email.trim(), news)}
      done={({ state }) => word(DONE[state])}
    >
      <p class="note">{word('mail.explained')}</p>
      <label>
        {word('mail.address')}
        <input
          type="email"
          value={email}
          maxLength={100}
          autocomplete="email"
          spellcheck={false}
          onInput={(event) => setEmail(event.currentTarget.value)}
        />
      </label>
      <NewsChoice {...news} what={word('mail.the_address')} />
    </SignedForm>
  );
}
