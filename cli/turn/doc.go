// Package turn runs a turn of an agent to its end, for all dialects: it passes items to the dialect, and handles
// stalls, interrupts, kills, detaching and catching up.
//
// A Loop describes how a dialect takes part in one turn. Stream.Turn runs a Loop over the lines of a process with one
// session. A session in a shared process gives the Loop its own Source, and runs it with New and Turn.Run:
//
//   - Source.In is a Queue into which the process puts messages and other items for the turn's goroutine. For
//     example, an item reports that the prompt could not be written. Source.Gone is closed after the last item.
//   - Handle processes one item and reports whether it ended the turn. It calls Turn.Changed for changes of the
//     output, which emits CaughtUp. If Limits.Start is set, it calls Turn.Accepted once the agent names the turn.
//   - Interrupt asks the agent to end the turn. The loop manages the deadlines. If an agent does not react within
//     Limits.Interrupt, or does not end the turn within half of Limits.Grace, the loop stops it with Source.Stop.
//   - Waiting reports whether an approval or a question is open. The code that answers it calls Queue.Wake.
//   - Run returns an End. If the turn was cut short, the End is the reason, even if the agent then ended the turn by
//     itself. The dialect finds the latter in its own state. Turn.Outcome returns the Result if the agent sent none.
//     Turn.Rest returns the items after the end.
//
// The goroutine of Run owns the turn's phase: starting, running, waiting, done. From each phase before done, an
// interrupt leads through interrupting and killing to done.
//
// Emitter enforces the contract of events. Queue and Writer connect a turn with its process. Added contains the
// messages that are steered into a turn. OneShot runs the turns of sessions with a process for each turn.
package turn
