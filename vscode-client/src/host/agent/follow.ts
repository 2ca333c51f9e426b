// A subscriber's whole duty: which frames to take, and when to ask again. Pure.

import type { AgentEvent, EventsFrame, Frame, SnapshotFrame } from "../../shared/wire.js";

/** The last event that was taken. */
export interface Cursor {
  epoch: string;
  seq: number;
}

export type Step =
  | { do: "take"; events: AgentEvent[]; cursor: Cursor }
  | { do: "replace"; frame: SnapshotFrame; cursor: Cursor }
  /** Deltas were left out: what is shown has a hole until it is read anew. */
  | { do: "reread"; cursor: Cursor }
  | { do: "ignore" }
  | { do: "resubscribe" };

/** Says what to do with a frame, given how far one has come. */
export function follow(cursor: Cursor, frame: Frame): Step {
  switch (frame.kind) {
    case "agent/snapshot":
      return { do: "replace", frame, cursor: { epoch: frame.epoch, seq: frame.seq } };
    case "agent/events":
      return frame.epoch === cursor.epoch ? take(cursor, frame) : { do: "resubscribe" };
    case "agent/gap":
      if (frame.epoch !== cursor.epoch) return { do: "resubscribe" };
      if (frame.to <= cursor.seq) return { do: "ignore" };
      return { do: "reread", cursor: { epoch: cursor.epoch, seq: frame.to } };
    case "agent/heartbeat":
      return frame.epoch === cursor.epoch && frame.seq <= cursor.seq
        ? { do: "ignore" }
        : { do: "resubscribe" };
    default:
      return { do: "ignore" };
  }
}

function take(cursor: Cursor, frame: EventsFrame): Step {
  if (frame.to <= cursor.seq) return { do: "ignore" };
  if (frame.from > cursor.seq + 1) return { do: "resubscribe" };
  const events = frame.from > cursor.seq ? frame.events : frame.events.filter((one) => one.seq > cursor.seq);
  return { do: "take", events, cursor: { epoch: cursor.epoch, seq: frame.to } };
}
