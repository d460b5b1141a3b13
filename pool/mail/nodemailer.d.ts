/** The part of nodemailer that the pool uses. */
declare module 'nodemailer' {
  type Socket = import('node:net').Socket;
  type Address = { readonly name: string; readonly address: string };
  export type SmtpOptions = {
    readonly host: string;
    readonly port: number;
    readonly secure: boolean;
    readonly auth?: { readonly user: string; readonly pass: string };
    readonly requireTLS?: boolean;
    readonly ignoreTLS?: boolean;
    readonly getSocket: (options: unknown, done: (error: Error | null, made?: { connection: Socket }) => void) => void;
    readonly greetingTimeout: number;
    readonly socketTimeout: number;
    readonly disableFileAccess: boolean;
    readonly disableUrlAccess: boolean;
  };
  export type Message = {
    readonly from: Address;
    readonly to: Address;
    readonly envelope: { readonly from: string; readonly to: readonly string[] };
    readonly subject: string;
    readonly text: string;
    readonly headers: Readonly<Record<string, string>>;
  };
  export function createTransport(options: SmtpOptions): {
    sendMail(message: Message): Promise<unknown>;
    close(): void;
  };
}
