// A PDF as a part of a prompt: read by the server where it can be, else sent with its bytes.

import type { Block } from "../../shared/wire.js";
import { type AgentPort, asAgentError } from "../agent/port.js";

/** As base64 it fits into one request. */
const SENT_MAX_BYTES = 5 * 1024 * 1024;
const METHOD_NOT_FOUND = -32_601;

export interface PdfFile {
  uri: string;
  name: string;
  /** Whether it is on the disk of the machine where the extension and the server run. */
  isLocal: boolean;
  size(): Promise<number>;
  read(): Promise<Uint8Array>;
}

/** Returns the part. Throws, with what to do, when the PDF cannot be attached. */
export async function pdfBlock(file: PdfFile, agent: Pick<AgentPort, "request">): Promise<Block> {
  const { name, uri } = file;
  if (file.isLocal) {
    const size = await file.size();
    try {
      return { type: "file", name, ...(await agent.request("agent/blob/store", { uri, size })) };
    } catch (error) {
      // A server from before this method.
      if (asAgentError(error).code !== METHOD_NOT_FOUND) throw error;
    }
  }
  const bytes = await file.read();
  if (bytes.length > SENT_MAX_BYTES)
    throw new Error(
      `${name} is larger than 5 MB, the most of a PDF that the server cannot read itself. Save it on the disk of this machine and add it again.`,
    );
  return { type: "file", name, mime: "application/pdf", data: Buffer.from(bytes).toString("base64") };
}
