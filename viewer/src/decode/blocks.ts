// Blocks of the page: base64 of a deflate stream in <script type="application/octet-stream" id="...">, which a browser
// neither runs nor shows.

interface FromBase64 {
  fromBase64?: (text: string) => Uint8Array<ArrayBuffer>;
}

/** Bytes of base64 without blanks. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as unknown as FromBase64).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

/** Unpack a raw deflate stream. */
export async function inflate(packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Remove a block from the document to free its text. */
export async function takeBlock(id: string): Promise<Uint8Array<ArrayBuffer>> {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no block "${id}": it is not whole`);
  const text = element.textContent ?? "";
  element.remove();
  return inflate(fromBase64(text));
}

export async function takeJson<T>(id: string): Promise<T> {
  return JSON.parse(new TextDecoder().decode(await takeBlock(id))) as T;
}
