// Package supervisor owns one running agent. A supervisor is a process of its own session that starts the
// agent, is parent of everything the agent leaves behind, keeps what it prints on disk and outlives whoever
// started it. The package is both ends: Main is the supervisor, Root and Run are its client.
//
// A run is a directory <root>/<id> (0700, files 0600):
//
//	spec.json    protocol version, process ids, command line without secrets, labels, limits. Never the environment.
//	out.<offset> standard output from that byte on; several of them are a ring. An offset is a sequence number.
//	err          the last of standard error
//	status.json  how it ended, replaced atomically
//	sock         where clients connect; the peer's user is checked
//	cgroup       which control group the agent is in, where one can be had
//
// The package is NOT a shell, a scheduler or a sandbox: it knows nothing of conversations, dialects or chats
// (labels are opaque to it), gives no terminal, and imports nothing of ours. It needs Linux and no cgo.
package supervisor
