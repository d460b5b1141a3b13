/**
 * The dashboard's page with the pool's figures in it: what a visitor wants to see comes with the first answer, and the page
 * need not ask for it. The figures are data that no browser runs, so the content security policy stays as strict as it is.
 */
import { compressed, etagOf, type StaticFile } from './static-files.ts';

/** Where the page looks for them (dashboard/data/hooks.ts). */
const OPENING = '<script type="application/json" id="first-document">';

/** Nothing in the figures, such as a pool's name, can end the element that they are in. */
const asData = (document: object): string => JSON.stringify(document).replaceAll('<', '\\u003c');

export class FirstPage {
  readonly #file: StaticFile;
  readonly #document: () => object | undefined;
  #made: { readonly of: object; readonly page: StaticFile } | undefined;

  constructor(file: StaticFile, document: () => object | undefined) {
    this.#file = file;
    this.#document = document;
  }

  /** Made once for each new figures, however many ask. */
  get page(): StaticFile {
    const document = this.#document();
    if (document === undefined) return this.#file;
    if (this.#made?.of !== document) this.#made = { of: document, page: this.#with(document) };
    return this.#made.page;
  }

  #with(document: object): StaticFile {
    const text = this.#file.body.toString('utf8');
    // By its place and not by replacing text: a `$` in the figures has no meaning.
    const end = text.indexOf('</head>');
    if (end === -1) return this.#file;
    const body = Buffer.from(`${text.slice(0, end)}${OPENING}${asData(document)}</script>${text.slice(end)}`);
    return { ...this.#file, body, brotli: compressed(body), etag: etagOf(body) };
  }
}
