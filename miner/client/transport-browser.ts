/** Connections of a page: WebSocket only. Also good in Node, which has the same class, but without pinning. */
import { PROTOCOL_V1, PROTOCOL_V2 } from '../../protocol/stratum/messages.ts';
import { refusal } from '../miner-error.ts';
import { type Endpoint, showEndpoint, webSocketUrl } from './pool-url.ts';
import type { Transport, TransportEvents } from './transport.ts';

/** A page may not send more than this ahead of a server that does not read. */
const MAX_BUFFERED = 1 << 20;

export function connectFromBrowser(endpoint: Endpoint, events: TransportEvents): Transport {
  const socket = new WebSocket(webSocketUrl(endpoint), endpoint.version === 2 ? PROTOCOL_V2 : PROTOCOL_V1);
  socket.binaryType = 'arraybuffer';
  let opened = false;
  let done = false;
  socket.onopen = () => {
    opened = true;
    events.onOpen();
  };
  socket.onmessage = ({ data }) => {
    if (!done) events.onData(typeof data === 'string' ? data : new Uint8Array(data as ArrayBuffer));
  };
  socket.onclose = ({ code, reason }) => {
    if (done) return;
    done = true;
    const where = showEndpoint(endpoint);
    events.onClose(
      opened
        ? refusal('pool_closed', `${where} closed the connection (${code}${reason === '' ? '' : ` ${reason}`})`)
        : refusal('pool_unreachable', `${where} cannot be reached`),
    );
  };
  return {
    send(data) {
      if (socket.readyState !== WebSocket.OPEN) return;
      if (socket.bufferedAmount > MAX_BUFFERED) socket.close(4000, 'not reading');
      else socket.send(typeof data === 'string' ? data : new Uint8Array(data));
    },
    close() {
      done = true;
      socket.close();
    },
  };
}
