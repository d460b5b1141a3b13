/** How to point a miner here: commands that can be copied, with this pool's own ports, protocol and TLS. */
import { useState } from 'preact/hooks';
import type { ConnectDocument } from '../../pool/api/documents.ts';
import { useDocument } from '../data/hooks.ts';
import { knownAddress } from '../data/known-address.ts';
import { commandTo, poolHost, tcpOf, userOf, webSocketOf } from '../data/miner-command.ts';
import { FactList } from '../explorer/links.tsx';
import { hashes } from '../format.ts';
import { Command, Placeholder } from './parts.tsx';

export function ConnectPage() {
  const { data, error } = useDocument<ConnectDocument>('connect', 600_000);
  const [address, setAddress] = useState(knownAddress);
  const user = userOf(address);
  if (data === undefined)
    return (
      <>
        <h1>Connect a miner</h1>
        <Placeholder error={error} loading empty="" />
      </>
    );
  return (
    <>
      <h1>Connect a miner</h1>
      <form class="row" onSubmit={(event) => event.preventDefault()}>
        <label class="grow">
          Your address
          <input value={address} spellcheck={false} onInput={(event) => setAddress(event.currentTarget.value)} />
        </label>
      </form>
      {data.services.map((service) => (
        <section class="card" key={service.service}>
          <h2>
            {service.service === 'pplns'
              ? 'PPLNS: shared rewards, steady income'
              : 'Solo: the finder gets the whole reward, less the fee'}
          </h2>
          {service.port === null ? null : (
            <>
              <p>{service.tls ? 'With TLS:' : 'Plain TCP:'}</p>
              <Command label={`${service.service}, TCP`} text={commandTo(tcpOf(service, service.port), address)} />
              <p>The same in the binary protocol, which needs a fraction of the traffic:</p>
              <Command
                label={`${service.service}, binary protocol`}
                text={commandTo(tcpOf(service, service.port, 'stratum2'), address)}
              />
            </>
          )}
          {service.fixed.map(({ port, work }) => (
            <div key={port}>
              <p>Every share has the work of {hashes(work)} hashes, for rented hash rate:</p>
              <Command
                label={`${service.service}, fixed work ${hashes(work)}`}
                text={commandTo(tcpOf(service, port), address)}
              />
            </div>
          ))}
          <WebSocketLine service={service} address={address} />
        </section>
      ))}
      <section class="card">
        <h2>A miner for rigs</h2>
        <p>
          One archive with everything the miner needs except the graphics driver. Make it on any machine with the
          sources:
        </p>
        <Command label="archive for rigs" text="npm run pack:miner -- linux-x64" />
        <p>Unpack it on the rig, list its graphics cards, then mine with one of the commands above:</p>
        <Command
          label="unpack"
          text="tar -xzf svc-miner-*-linux-x64.tar.gz && cd svc-miner-*/ && ./svc-miner --list-devices"
        />
      </section>
      <section class="card">
        <h2>Settings for other mining programs</h2>
        <p>Any program that supports this network’s proof of work and stratum takes the same values:</p>
        <FactList
          facts={[
            [
              'Server',
              data.services
                .flatMap(({ service, port, tls }) =>
                  port === null ? [] : [`${poolHost()}:${port}${tls ? ' (TLS)' : ''}, ${service}`],
                )
                .join('; '),
            ],
            ['User', `${user}: address, a dot, a name for the rig`],
            [
              'Password',
              'may be empty; d=WORK fixes the share work (share difficulty, in hashes), min=WORK sets a minimum',
            ],
          ]}
        />
      </section>
      <section class="card">
        <h2>Without a pool</h2>
        <p>
          With a bridge, each block pays the address of the miner that found it, without a pool fee. Run it next to your
          own node:
        </p>
        <Command label="bridge" text="svc-bridge --node http://127.0.0.1:28702" />
        <Command label="miner at the bridge" text={`svc-miner -o stratum+tcp://127.0.0.1:28710 -u ${user}`} />
      </section>
    </>
  );
}

function WebSocketLine({ service, address }: { service: ConnectDocument['services'][number]; address: string }) {
  const url = webSocketOf(service);
  if (url === undefined) return null;
  return (
    <>
      <p>Through a WebSocket, for networks that allow only web traffic:</p>
      <Command label={`${service.service}, WebSocket`} text={commandTo(url, address)} />
    </>
  );
}
