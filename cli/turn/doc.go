// Package turn runs a turn of an agent to its end, for all providers. It passes the agent's messages to the provider,
// and handles silence of the agent, interrupts, kills, detaching, and catching up with old output.
//
// A Loop contains what a provider adds to one turn. If the process has only one session, Stream.Turn runs the Loop over
// the lines that the process prints. If sessions share a process, each session gives the Loop its own Source, and runs
// it with New and Turn.Run:
//
//   - Source.In is a Queue into which the process puts messages and other items for the turn's goroutine. For
//     example, an item reports that the prompt could not be written. Source.Gone is closed after the last item.
//   - Handle processes one item and reports whether it ended the turn. It calls Turn.Changed for changes of the
//     output. If Limits.Start is set, it calls Turn.Accepted once the agent has accepted the turn.
//   - Interrupt asks the agent to end the turn. The loop stops the process with Source.Stop if the agent does not
//     react within Limits.Interrupt, or does not end the turn within half of Limits.Grace.
//   - Waiting reports whether an approval or a question is open. The code that passes on the answer calls Queue.Wake.
//   - Run returns an End. If the turn was cut short, the End is the reason, even if the agent then ended the turn by
//     itself. The provider learns from the agent's messages whether the agent ended the turn. If the agent sent no
//     result, Turn.Outcome returns one. Turn.Rest returns the items that came after the end.
//
// The goroutine of Run owns the turn's phase. The phase is starting, running, waiting or done. From each phase before
// done, an interrupt leads through interrupting and killing to done.
//
// Emitter makes sure that a provider's events keep the contract of cli.Event. Queue and Writer connect a turn with its
// process. Added contains the messages that users send during a turn. OneShot runs turns in sessions that start a
// process for each turn.
package turn
