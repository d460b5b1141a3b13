/** A miner's own payout threshold: the command line first, and a form that signs in the page for people who have no wallet program at hand. */
import { useRef, useState } from 'preact/hooks';
import type { AddressProofRequest } from '../../protocol/address-proof.ts';
import { formatCoins, parseCoins } from '../../protocol/amount.ts';
import { apiUrl, read } from '../data/client.ts';
import { Command } from '../view/parts.tsx';

type Outcome = { readonly tone: 'good' | 'bad' | 'note'; readonly text: string };

const post = <T,>(path: string, body: object): Promise<T> =>
  read<T>(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

function atomsOf(coins: string): string | undefined {
  try {
    return parseCoins(coins.trim()).toString();
  } catch {
    return undefined;
  }
}

/** What a person types who keeps the words where they are. */
function commands(path: string, atoms: string): string {
  const url = apiUrl(path).href.replaceAll("'", '%27');
  const curl = "curl -fsS -H 'content-type: application/json'";
  return [
    `${curl} -d '{"threshold_atoms":"${atoms}"}' '${url}/request' > request.json`,
    'svc-wallet prove-address request.json > proof.json',
    `printf '{"threshold_atoms":"${atoms}","request":%s,"proof":%s}' "$(cat request.json)" "$(cat proof.json)" > change.json`,
    `${curl} -d @change.json '${url}'`,
    // One command: pasted as four, the next line would be the answer to the wallet's question.
  ].join(' &&\n');
}

/** `address`: as the pool writes it. */
export function ThresholdForm({ address, minimum, onChange }: { address: string; minimum: string; onChange(): void }) {
  const [coins, setCoins] = useState(formatCoins(BigInt(minimum)).replace(/\.?0+$/, ''));
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Outcome>();
  // The page's state never holds them: they are read from the form once, and the fields are emptied.
  const phrase = useRef<HTMLTextAreaElement>(null);
  const passphrase = useRef<HTMLInputElement>(null);
  const path = `miners/${encodeURIComponent(address)}/payout-threshold`;
  const atoms = atomsOf(coins);

  const change = async (): Promise<Outcome> => {
    const secrets = { phrase: phrase.current?.value ?? '', passphrase: passphrase.current?.value ?? '' };
    if (phrase.current !== null) phrase.current.value = '';
    if (passphrase.current !== null) passphrase.current.value = '';
    if (atoms === undefined) return { tone: 'bad', text: 'Type an amount in coins, such as 1.25.' };
    const { signRequest } = await import('./sign-request.ts');
    const request = await post<AddressProofRequest>(`${path}/request`, { threshold_atoms: atoms });
    const proof = await signRequest(request, { address, atoms }, secrets);
    await post(path, { threshold_atoms: atoms, request, proof });
    onChange();
    return { tone: 'good', text: `Changed: you are paid out from ${formatCoins(BigInt(atoms))} coins.` };
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setOutcome({ tone: 'note', text: 'Signing in this page…' });
    setOutcome(
      await change().catch((error: Error) => ({ tone: 'bad' as const, text: `Nothing changed: ${error.message}.` })),
    );
    setBusy(false);
  };
  return (
    <section class="card">
      <h2>Payout threshold</h2>
      <form onSubmit={submit}>
        <label>
          Pay me from, in coins
          <input
            value={coins}
            inputmode="decimal"
            autocomplete="off"
            onInput={(event) => setCoins(event.currentTarget.value)}
          />
        </label>
        <p>
          The change is signed by the key of your address. On the command line your words stay in your wallet; this is
          the way we recommend:
        </p>
        <Command label="payout threshold" text={commands(path, atoms ?? 'ATOMS')} />
        <details>
          <summary>Sign in this page instead</summary>
          <p class="warn">
            Anyone who sees your 24 words can take all your coins. This page signs with them here, in your browser, and
            sends only the signature. But you trust this pool’s page, your browser and its extensions not to copy them,
            and you cannot check that. Never type the words of a wallet that holds more than you mine here.
          </p>
          <label>
            24 words
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
            Passphrase, if the wallet has one
            <input ref={passphrase} type="password" autocomplete="off" data-lpignore="true" data-1p-ignore />
          </label>
          <button type="submit" class="primary" disabled={busy}>
            Sign and change
          </button>
        </details>
      </form>
      <p role="status" class={outcome?.tone ?? ''}>
        {outcome?.text ?? ''}
      </p>
    </section>
  );
}
