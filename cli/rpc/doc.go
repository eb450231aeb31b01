// Package rpc implements one end of a JSON-RPC 2.0 connection over the standard input and output of an agent's process.
// It splits the output into messages. It passes each answer to the call that waits for it, and passes requests and
// notifications to the dialect in order. It writes all messages from a single queue.
//
// The package knows no methods of any protocol. With a different Codec it speaks a protocol other than JSON-RPC.
package rpc
