/** What the first page begins with: the way to one's own figures, and the three steps of those who have none yet. */
import { useState } from 'preact/hooks';
import type { ConnectDocument } from '../../pool/api/documents.ts';
import { useDocument } from '../data/hooks.ts';
import { keepAddress, knownAddress } from '../data/known-address.ts';
import { minerCommand } from '../data/miner-command.ts';
import { count } from '../format.ts';
import { linkTo } from '../router.ts';
import { Command, Identifier } from './parts.tsx';

export function AddressForm({
  typed,
  onType,
  label = 'Your address',
}: {
  typed: string;
  onType(address: string): void;
  label?: string;
}) {
  const go = (event: Event) => {
    event.preventDefault();
    const wanted = typed.trim();
    if (wanted === '') return;
    keepAddress(wanted);
    location.hash = linkTo('miner', wanted);
  };
  return (
    <form class="row" onSubmit={go}>
      <label class="grow">
        {label}
        <input
          value={typed}
          spellcheck={false}
          autocomplete="off"
          onInput={(event) => onType(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="primary">
        Show
      </button>
    </form>
  );
}

export function StartSteps() {
  const [known] = useState(knownAddress);
  const [typed, setTyped] = useState(known);
  return (
    <section class="card">
      <AddressForm typed={typed} onType={setTyped} />
      {/* Who has been here before knows the steps. */}
      <details class="bare" open={known === ''}>
        <summary>
          <h2>Start mining in three steps</h2>
        </summary>
        <Steps address={typed} />
      </details>
    </section>
  );
}

function Steps({ address }: { address: string }) {
  const connect = useDocument<ConnectDocument>('connect', 600_000);
  const command = minerCommand(connect.data?.services[0], address);
  return (
    <ol class="three">
      <li>
        <h3>Get a wallet</h3>
        <p>
          <a href={linkTo('mine')}>Make an address in this page</a>, or with the wallet program:
        </p>
        <Command label="wallet" text="svc-wallet init --generate-password" />
      </li>
      <li>
        <h3>Get the miner</h3>
        <Miners files={connect.data?.downloads ?? []} />
        <p class="note">
          <a href={linkTo('connect')}>TLS, solo and other mining programs</a>
        </p>
      </li>
      <li>
        <h3>Run it</h3>
        {connect.data !== undefined && command === undefined ? null : (
          <>
            <p>{address.trim() === '' ? 'With your address in place of ADDRESS:' : 'With your address:'}</p>
            {/* It takes its room before the pool's port is known. */}
            <div class={command === undefined ? 'unseen' : ''}>
              <Command label="line to run" text={command ?? 'svc-miner -o stratum+tcp://POOL:00000 -u ADDRESS.rig1'} />
            </div>
          </>
        )}
        <p>
          Or <a href={linkTo('mine')}>mine here</a>, in this browser.
        </p>
      </li>
    </ol>
  );
}

function Miners({ files }: { files: ConnectDocument['downloads'] }) {
  if (files.length === 0)
    return (
      <>
        <p>One archive for a rig, made from the sources:</p>
        <Command label="miner" text="npm run pack:miner -- linux-x64" />
      </>
    );
  return (
    <>
      <p>From this pool, with its SHA-256:</p>
      <ul class="plain">
        {files.map(({ name, bytes, sha256, path }) => (
          <li key={name}>
            <a href={path} download>
              {name}
            </a>{' '}
            <span class="note">{count(Math.ceil(bytes / 1e6))} MB</span> <Identifier id={sha256} />
          </li>
        ))}
      </ul>
    </>
  );
}
