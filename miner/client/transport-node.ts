/**
 * Connections of the command-line miner: TCP, TLS and WebSocket. TLS is checked against the system's authorities or,
 * with pins, only against the SHA-256 of the server's certificate, so that a self-signed one can be trusted.
 */
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { WebSocket } from 'ws';
import type { Fetch } from '../../protocol/api/client-calls.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { PROTOCOL_V1, PROTOCOL_V2 } from '../../protocol/stratum/messages.ts';
import { httpFetch } from '../../runtime/node-client/http-fetch.ts';
import { type Refusal, refusal } from '../miner-error.ts';
import { FloodMeter } from './flood.ts';
import { type Endpoint, showEndpoint, webSocketUrl } from './pool-url.ts';
import type { Connect, Transport, TransportEvents } from './transport.ts';

export type TlsOptions = {
  /** SHA-256 of accepted certificates, lower-case hex. With any, only these are accepted, and no authority is asked. */
  readonly pins: readonly string[];
  /** Authorities in place of the system's, as PEM. */
  readonly authorities?: string;
};

/** A server that does not read for this long counts as disconnected. */
const MAX_BUFFERED = 1 << 20;

export const connectFromNode =
  (tls: TlsOptions): Connect =>
  (endpoint, events) =>
    endpoint.transport === 'ws' || endpoint.transport === 'wss'
      ? overWebSocket(endpoint, events, tls)
      : overStream(endpoint, events, tls);

/** Reports an end once, and nothing after it. */
function once(endpoint: Endpoint, events: TransportEvents) {
  let done = false;
  return {
    get done() {
      return done;
    },
    finish: (): void => {
      done = true;
    },
    close(why: Refusal): void {
      if (done) return;
      done = true;
      events.onClose(refusal(why.code, `${showEndpoint(endpoint)}: ${why.message}`));
    },
  };
}

const tlsSettings = (endpoint: Endpoint, { authorities }: TlsOptions) => ({
  ...(/^[\d.]+$|:/.test(endpoint.host) ? {} : { servername: endpoint.host }),
  ...(authorities === undefined ? {} : { ca: authorities }),
  // Checked by certificateRefusal before anything is sent: only there the fingerprint is known.
  rejectUnauthorized: false,
});

const fingerprint = (socket: TLSSocket): string =>
  (socket.getPeerCertificate().fingerprint256 ?? '').replaceAll(':', '').toLowerCase();

const DISTRUST: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'certificate has expired',
  CERT_NOT_YET_VALID: 'certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'self-signed certificate',
  SELF_SIGNED_CERT_IN_CHAIN: 'certificate of an unknown authority',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'certificate of an unknown authority',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'certificate of an unknown authority',
  ERR_TLS_CERT_ALTNAME_INVALID: 'certificate of another host',
};

/** Undefined when the server's certificate is trusted. */
function certificateRefusal(socket: TLSSocket, { pins }: TlsOptions): Refusal | undefined {
  const found = fingerprint(socket);
  if (pins.length > 0)
    return pins.includes(found)
      ? undefined
      : refusal('pool_certificate', `the certificate is not the pinned one; its SHA-256 is ${found}`);
  if (socket.authorized) return undefined;
  // A code, which the types call an error.
  const code = String(socket.authorizationError);
  return refusal(
    'pool_certificate',
    `${DISTRUST[code] ?? code}; ask the operator whether its SHA-256 is ${found}, then --tls-pin ${found} trusts it`,
  );
}

/**
 * Calls of the books' API and of the miner's own node, with the same options of TLS. These servers may be others than
 * the stratum server, with certificates of their own: so authorities and pins are trusted beside the system's authorities.
 */
export const fetchFromNode = ({ pins, authorities }: TlsOptions): Fetch =>
  httpFetch({
    tls: {
      authorities: authorities === undefined ? [] : [authorities],
      refuses: (socket) =>
        pins.includes(fingerprint(socket)) ? undefined : certificateRefusal(socket, { pins: [] })?.message,
    },
  });

/** Recognises by the first bytes a service that is not a pool of this transport; undefined if it may be a pool. */
export function foreignAnswer(first: Uint8Array, transport: Endpoint['transport']): string | undefined {
  const text = Buffer.from(first.subarray(0, 5)).toString('latin1');
  if (text === 'HTTP/') return 'a web server answers at this port: ask the pool for its stratum port, or try ws://';
  // An alert or a handshake of TLS.
  if (transport === 'tcp' && (first[0] === 0x15 || first[0] === 0x16) && first[1] === 0x03)
    return 'the port wants TLS: use stratum+tls://';
  return undefined;
}

/** The answer to OpenSSL was not TLS. */
const NO_TLS = /WRONG_VERSION_NUMBER|wrong version number|packet length too long|HTTP_REQUEST/;

/** What Node says of it: a stratum port without a certificate ends what begins with TLS. */
const BEFORE_TLS = 'disconnected before secure TLS connection was established';

function failure(error: NodeJS.ErrnoException, opened: boolean): Refusal {
  if (NO_TLS.test(`${error.code} ${error.message}`))
    return refusal(
      'pool_unreachable',
      'the port does not speak TLS: use the plain form of the URL, stratum+tcp:// or ws://',
    );
  if (error.message.includes(BEFORE_TLS))
    return refusal(
      'pool_unreachable',
      'the port closed the connection instead of speaking TLS: without TLS use the plain form of the URL, stratum+tcp:// or ws://',
    );
  if (error.code === 'ECONNREFUSED') return refusal('pool_down', 'nothing listens there');
  // Hosts with several addresses fail with an AggregateError that has no text of its own.
  const text = error.message === '' ? (error.code ?? 'cannot connect') : error.message;
  return refusal(opened ? 'pool_closed' : 'pool_unreachable', text);
}

function overStream(endpoint: Endpoint, events: TransportEvents, tls: TlsOptions): Transport {
  const end = once(endpoint, events);
  const { host, port } = endpoint;
  let opened = false;
  const open = (): void => {
    opened = true;
    events.onOpen();
  };
  let socket: Socket;
  if (endpoint.transport === 'tls') {
    const secure = connectTls({ host, port, ...tlsSettings(endpoint, tls) }, () => {
      const wrong = certificateRefusal(secure, tls);
      if (wrong === undefined) return open();
      secure.destroy();
      end.close(wrong);
    });
    socket = secure;
  } else socket = connectTcp({ host, port }, open);
  socket.setNoDelay(true);
  socket.setKeepAlive(true, 30_000);
  let isFirst = true;
  socket.on('data', (chunk: Buffer) => {
    const foreign = isFirst ? foreignAnswer(chunk, endpoint.transport) : undefined;
    isFirst = false;
    if (foreign !== undefined) {
      socket.destroy();
      end.close(refusal('pool_garbage', foreign));
    }
    if (!end.done) events.onData(chunk);
  });
  socket.on('error', (error) => end.close(failure(error, opened)));
  socket.on('close', () =>
    end.close(refusal(opened ? 'pool_closed' : 'pool_unreachable', 'the connection was closed')),
  );
  return {
    send(data) {
      if (!opened || socket.destroyed) return;
      if (socket.writableLength > MAX_BUFFERED) {
        socket.destroy();
        end.close(refusal('pool_silent', 'the server does not read'));
      } else socket.write(data);
    },
    close() {
      end.finish();
      socket.destroy();
    },
  };
}

function overWebSocket(endpoint: Endpoint, events: TransportEvents, tls: TlsOptions): Transport {
  const end = once(endpoint, events);
  const protocol = endpoint.version === 2 ? PROTOCOL_V2 : PROTOCOL_V1;
  let opened = false;
  const socket = new WebSocket(webSocketUrl(endpoint), protocol, {
    maxPayload: 16_384,
    perMessageDeflate: false,
    handshakeTimeout: 10_000,
    followRedirects: false,
    ...(endpoint.transport === 'wss' ? tlsSettings(endpoint, tls) : {}),
  });
  socket.on('upgrade', (response) => {
    const wrong = endpoint.transport === 'wss' ? certificateRefusal(response.socket as TLSSocket, tls) : undefined;
    if (wrong === undefined) return;
    end.close(wrong);
    socket.terminate();
  });
  socket.on('open', () => {
    if (end.done) return;
    opened = true;
    events.onOpen();
  });
  socket.on('message', (data, isBinary) => {
    if (end.done) return;
    const bytes = data as Buffer;
    events.onData(isBinary ? (bytes as Bytes) : bytes.toString('utf8'));
  });
  // These do not reach the session, but each is read and answered.
  const pings = new FloodMeter(performance.now());
  const onControl = (): void => {
    if (pings.received(performance.now())) return;
    end.close(refusal('pool_flood', 'the server sends pings without end'));
    socket.terminate();
  };
  socket.on('ping', onControl);
  socket.on('pong', onControl);
  socket.on('error', (error) => end.close(failure(error, opened)));
  socket.on('close', (code, reason) =>
    end.close(refusal(opened ? 'pool_closed' : 'pool_unreachable', `the connection was closed (${code} ${reason})`)),
  );
  return {
    send(data) {
      if (socket.readyState !== WebSocket.OPEN) return;
      if (socket.bufferedAmount > MAX_BUFFERED) {
        end.close(refusal('pool_silent', 'the server does not read'));
        socket.terminate();
      } else socket.send(data);
    },
    close() {
      end.finish();
      socket.terminate();
    },
  };
}
