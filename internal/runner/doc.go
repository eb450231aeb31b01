// Package runner owns the agents of one environment: one process starts them, writes their input, takes their exit, ends
// their trees, and keeps deadlines and limits while no client is there. No output passes through it. An agent's standard
// output is a regular file that the agent itself appends to, the run's journal, which a client opens and follows. The
// package is both ends: Main is the runner, Client and Run are its client.
//
// A directory holds the socket of the runner (sock, 0600), a lock that one runner holds, and a directory for each run:
//
//	run.json  what was started, without secrets. Never the environment.
//	log       what happened, one line each: the agent's process, input begun and ended, times, the end
//	out       standard output; an offset in it names a byte for good. Its head may be a hole
//	err       the last of standard error
//
// A runner that dies loses exit codes and nothing else: agents run on, the next runner finds them by their directories.
// A runner leaves when no agent has run for some time, and the next start starts another.
//
// Standard input is a socket of which the agent holds both ends, so that no death of ours ends it. The runner takes the
// other end from the agent when it finds the run of a dead runner.
//
// The package is NOT a shell, a scheduler or a sandbox: it knows nothing of conversations, dialects or chats, and gives no
// terminal. It needs Linux and no cgo.
package runner
