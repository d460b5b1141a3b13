/** A change that the key of the miner's address signs: in the page, for people who have no wallet program at hand, or by commands. */

import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import type { AddressProofRequest } from '../../protocol/transactions/address-proof.ts';
import { apiUrl, read } from '../data/client.ts';
import { Command } from '../view/parts.tsx';
import { word } from '../words/language.ts';
import type { SignedWish } from './wishes.ts';

type Outcome = { readonly tone: 'good' | 'bad' | 'note'; readonly text: string };

const post = <T,>(path: string, body: object): Promise<T> =>
  read<T>(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

/** The id of what was said about the form of this name, for `aria-describedby` of its fields. */
export const outcomeOf = (name: string): string => `${name}-outcome`;

/** For a word within single quotes of a shell. */
const quoted = (text: string): string => text.replaceAll("'", "'\\''");

/** The commands for a person who keeps the words in the wallet. */
function commands(path: string, fields: SignedWish['fields']): string {
  const url = apiUrl(path).href.replaceAll("'", '%27');
  const curl = "curl -fsS -H 'content-type: application/json'";
  const json = JSON.stringify(fields);
  // printf reads its format: a percent sign of a URL is none of its own.
  const start = json.slice(1, -1).replaceAll('\\', '\\\\').replaceAll('%', '%%');
  return [
    `${curl} -d '${quoted(json)}' '${url}/request' > request.json`,
    'svc-wallet prove-address request.json > proof.json',
    `printf '{${quoted(start)},"request":%s,"proof":%s}' "$(cat request.json)" "$(cat proof.json)" > change.json`,
    `${curl} -d @change.json '${url}'`,
    // One command: pasted as four, the next line would be the answer to the wallet's question.
  ].join(' &&\n');
}

export function SignedForm<A>({
  title,
  name,
  address,
  path,
  label,
  example,
  wish,
  done,
  children,
}: {
  title: string;
  /** In the ids of the page, in every language. */
  name: string;
  /** As the pool writes it. */
  address: string;
  path: string;
  /** Names the commands. */
  label: string;
  /** Fields of the commands while the form holds nothing that could be sent. */
  example: SignedWish['fields'];
  /** A text says what is wrong with the form. */
  wish: SignedWish | string;
  /** What the person reads when it is changed. */
  done(answer: A): string;
  children: ComponentChildren;
}) {
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Outcome>();
  // The page's state never holds them: they are read from the form once, and the fields are emptied.
  const phrase = useRef<HTMLTextAreaElement>(null);
  const passphrase = useRef<HTMLInputElement>(null);

  const change = async (): Promise<Outcome> => {
    if (typeof wish === 'string') return { tone: 'bad', text: wish };
    const secrets = { phrase: phrase.current?.value ?? '', passphrase: passphrase.current?.value ?? '' };
    if (phrase.current !== null) phrase.current.value = '';
    if (passphrase.current !== null) passphrase.current.value = '';
    const { signRequest } = await import('./sign-request.ts');
    const request = await post<AddressProofRequest>(`${path}/request`, wish.fields);
    const proof = await signRequest(request, { address, purpose: wish.purpose }, secrets);
    return { tone: 'good', text: done(await post<A>(path, { ...wish.fields, request, proof })) };
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setOutcome({ tone: 'note', text: word('sign.signing') });
    setOutcome(
      await change().catch((error: Error) => ({
        tone: 'bad' as const,
        text: word('sign.nothing_changed', { reason: error.message }),
      })),
    );
    setBusy(false);
  };
  return (
    <section class="card">
      <h2>{title}</h2>
      <form onSubmit={submit}>
        {children}
        <p class="note">{word('sign.two_ways')}</p>
        <details>
          <summary>{word('sign.here')}</summary>
          <p class="warn">{word('sign.warning')}</p>
          <label>
            {word('sign.words')}
            <textarea
              ref={phrase}
              rows={3}
              autocomplete="off"
              autocapitalize="off"
              spellcheck={false}
              // Extensions that check spelling or fill in passwords send what they read elsewhere.
              data-gramm="false"
              data-lpignore="true"
              data-1p-ignore
            />
          </label>
          <label>
            {word('sign.passphrase')}
            <input ref={passphrase} type="password" autocomplete="off" data-lpignore="true" data-1p-ignore />
          </label>
          <button type="submit" class="primary" aria-disabled={busy}>
            {word('sign.button')}
          </button>
        </details>
        <details>
          <summary>{word('sign.commands')}</summary>
          <Command label={label} text={commands(path, typeof wish === 'string' ? example : wish.fields)} />
        </details>
      </form>
      <p id={outcomeOf(name)} role="status" class={outcome?.tone ?? ''}>
        {outcome?.text ?? ''}
      </p>
    </section>
  );
}
