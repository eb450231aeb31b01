// Package turn takes a turn of an agent to its end, for all dialects: it hands items to the dialect, and counts silence,
// interrupts, kills, detaches and catches up.
//
// A Loop says how a dialect takes part in one turn. Stream.Turn runs it over the lines of a process that serves one session.
// A session in a shared process gives the Loop a Source of its own, and runs it by New and Turn.Run:
//
//   - Source.In is a Queue that the process puts messages into, and whatever else the turn's goroutine must learn, such as
//     that the prompt could not be written. Source.Gone is closed after the last of them.
//   - Handle deals with one item and says whether it ended the turn. It calls Turn.Changed for what happened to the output,
//     which tells CaughtUp, and, where Limits.Start is set, Turn.Accepted once the agent names the turn.
//   - Interrupt sends the request to end the turn. Deadlines are the loop's: an agent that shows no reaction in
//     Limits.Interrupt, or does not end the turn in half of Limits.Grace, is stopped by Source.Stop.
//   - Waiting says that an approval or a question is open; who answers it calls Queue.Wake.
//   - Run returns an End. It is why the turn was cut short, if it was, even if the agent then ended it by its own word: the
//     dialect knows that from its own state. Turn.Outcome is the Result where the agent gave none. Turn.Rest is what came
//     after the end.
//
// The phase of a turn belongs to the goroutine of Run. It goes from starting over running and waiting to done, and from each
// of them over interrupting and killing.
//
// Emitter upholds the contract of events, Queue and Writer are the two ways between a turn and its process, Added are the
// messages that are sent into a turn, and OneShot runs the turns of sessions that have a process each.
package turn
