/** How to point a miner here: commands that can be copied, with this pool's own ports, protocol and TLS. */

import { useState } from 'preact/hooks';
import type { ConnectDocument } from '../../pool/api/documents.ts';
import { useDocument } from '../data/hooks.ts';
import { knownAddress } from '../data/known-address.ts';
import { commandTo, poolHost, tcpOf, userOf, webSocketOf } from '../data/miner-command.ts';
import { FactList } from '../explorer/links.tsx';
import { hashes } from '../format.ts';
import { word } from '../words/language.ts';
import { Command, Placeholder } from './parts.tsx';

export function ConnectPage() {
  const { data, error } = useDocument<ConnectDocument>('connect', 600_000);
  const [address, setAddress] = useState(knownAddress);
  const user = userOf(address);
  if (data === undefined)
    return (
      <>
        <h1>{word('connect.title')}</h1>
        <Placeholder error={error} loading empty="" />
      </>
    );
  return (
    <>
      <h1>{word('connect.title')}</h1>
      <form class="row" onSubmit={(event) => event.preventDefault()}>
        <label class="grow">
          {word('start.address')}
          <input value={address} spellcheck={false} onInput={(event) => setAddress(event.currentTarget.value)} />
        </label>
      </form>
      {data.services.map((service) => (
        <section class="card" key={service.service}>
          <h2>{word(service.service === 'pplns' ? 'connect.pplns' : 'connect.solo')}</h2>
          {service.port === null ? null : (
            <>
              <p>{word(service.tls ? 'connect.tls' : 'connect.plain')}</p>
              <Command label={`${service.service}, TCP`} text={commandTo(tcpOf(service, service.port), address)} />
              <p>{word('connect.binary')}</p>
              <Command
                label={word('connect.binary_label', { service: service.service })}
                text={commandTo(tcpOf(service, service.port, 'stratum2'), address)}
              />
            </>
          )}
          {service.fixed.map(({ port, work }) => (
            <div key={port}>
              <p>{word('connect.fixed', { work: hashes(work) })}</p>
              <Command
                label={word('connect.fixed_label', { service: service.service, work: hashes(work) })}
                text={commandTo(tcpOf(service, port), address)}
              />
            </div>
          ))}
          <WebSocketLine service={service} address={address} />
        </section>
      ))}
      <section class="card">
        <h2>{word('connect.rigs')}</h2>
        <p>{word('connect.rigs_make')}</p>
        <Command label={word('connect.rigs_archive')} text="npm run pack:miner -- linux-x64" />
        <p>{word('connect.rigs_unpack')}</p>
        <Command
          label={word('connect.unpack')}
          text="tar -xzf svc-miner-*-linux-x64.tar.gz && cd svc-miner-*/ && ./svc-miner --list-devices"
        />
      </section>
      <section class="card">
        <h2>{word('connect.others')}</h2>
        <p>{word('connect.same_values')}</p>
        <FactList
          facts={[
            [
              word('connect.server'),
              data.services
                .flatMap(({ service, port, tls }) =>
                  port === null ? [] : [`${poolHost()}:${port}${tls ? ' (TLS)' : ''}, ${service}`],
                )
                .join('; '),
            ],
            [word('connect.user'), word('connect.user_means', { user })],
            [word('connect.password'), word('connect.password_means')],
          ]}
        />
      </section>
      <section class="card">
        <h2>{word('connect.alone')}</h2>
        <p>{word('connect.bridge')}</p>
        <Command label={word('connect.bridge_label')} text="svc-bridge --node http://127.0.0.1:28702" />
        <Command label={word('connect.bridge_miner')} text={`svc-miner -o stratum+tcp://127.0.0.1:28710 -u ${user}`} />
      </section>
    </>
  );
}

function WebSocketLine({ service, address }: { service: ConnectDocument['services'][number]; address: string }) {
  const url = webSocketOf(service);
  if (url === undefined) return null;
  return (
    <>
      <p>{word('connect.web')}</p>
      <Command label={`${service.service}, WebSocket`} text={commandTo(url, address)} />
    </>
  );
}
