/** What the first page begins with: the way to one's own figures, and the three steps of those who have none yet. */

import { useState } from 'preact/hooks';
import type { ConnectDocument } from '../../pool/api/documents.ts';
import { useDocument } from '../data/hooks.ts';
import { keepAddress, knownAddress } from '../data/known-address.ts';
import { minerCommand } from '../data/miner-command.ts';
import { count } from '../format.ts';
import { linkTo } from '../router.ts';
import { word, wordAround } from '../words/language.ts';
import { Command, Identifier } from './parts.tsx';

export function AddressForm({
  typed,
  onType,
  label = word('start.address'),
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
        {word('part.show')}
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
          <h2>{word('start.title')}</h2>
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
        <h3>{word('start.wallet')}</h3>
        <p>{wordAround('start.make', { here: <a href={linkTo('mine')}>{word('start.make_here')}</a> })}</p>
        <Command label={word('start.wallet_command')} text="svc-wallet init --generate-password" />
      </li>
      <li>
        <h3>{word('start.miner')}</h3>
        <Miners files={connect.data?.downloads ?? []} />
        <p class="note">
          <a href={linkTo('connect')}>{word('start.others')}</a>
        </p>
      </li>
      <li>
        <h3>{word('start.run')}</h3>
        {connect.data !== undefined && command === undefined ? null : (
          <>
            <p>{word(address.trim() === '' ? 'start.instead_of' : 'start.with_address')}</p>
            {/* It takes its room before the pool's port is known. */}
            <div class={command === undefined ? 'unseen' : ''}>
              <Command
                label={word('start.line')}
                text={command ?? 'svc-miner -o stratum+tcp://POOL:00000 -u ADDRESS.rig1'}
              />
            </div>
          </>
        )}
        <p>{wordAround('start.or_here', { here: <a href={linkTo('mine')}>{word('start.mine_here')}</a> })}</p>
      </li>
    </ol>
  );
}

function Miners({ files }: { files: ConnectDocument['downloads'] }) {
  if (files.length === 0)
    return (
      <>
        <p>{word('start.archive')}</p>
        <Command label={word('start.miner_command')} text="npm run pack:miner -- linux-x64" />
      </>
    );
  return (
    <>
      <p>{word('start.downloads')}</p>
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
