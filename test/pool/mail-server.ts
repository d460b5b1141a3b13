/** A mail server on a socket of this machine: what it was sent can be looked at. */
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export type Mail = { readonly from: string; readonly to: readonly string[]; readonly data: string };

/** Headers and lines that were folded, as they are meant. */
function readable(mail: string): string {
  const [head = '', ...body] = mail.split('\r\n\r\n');
  const text = body.join('\r\n\r\n').replace(/=\r\n/g, '').replaceAll('=3D', '=');
  return `${head.replace(/\r\n[ \t]+/g, ' ')}\r\n\r\n${text}`;
}

/** Speaks as much SMTP as a mail takes. `rcpt` answers for a recipient. */
export async function mailServer(rcpt: (recipient: string) => string = () => '250 ok') {
  const got: Mail[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.setEncoding('latin1'));
    let [text, from, to, isData] = ['', '', [] as string[], false];
    const say = (line: string) => socket.write(`${line}\r\n`);
    const line = (word: string) => {
      if (/^EHLO|^HELO/.test(word)) say('250 test');
      else if (word.startsWith('MAIL FROM:')) {
        [from, to] = [word.slice(10), []];
        say('250 ok');
      } else if (word.startsWith('RCPT TO:')) {
        to.push(word.slice(8));
        say(rcpt(word.slice(8)));
      } else if (word === 'DATA') {
        isData = true;
        say('354 go on');
      } else if (word === 'QUIT') socket.end('221 bye\r\n');
      else say('502 what');
    };
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      text += chunk;
      for (;;) {
        const end = text.indexOf(isData ? '\r\n.\r\n' : '\r\n');
        if (end === -1) return;
        const part = text.slice(0, end);
        text = text.slice(end + (isData ? 5 : 2));
        if (isData) {
          isData = false;
          got.push({ from, to, data: readable(part) });
          say('250 ok');
        } else line(part);
      }
    });
    say('220 test');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(close);
  return { got, close, url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}` };
}
