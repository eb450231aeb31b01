// Package rpc implements one end of a JSON-RPC 2.0 connection over the standard input and output of an agent's process.
// It splits the output into messages, passes each answer to the call that waits for it, and requests and notifications
// to the dialect in their order. It writes from a single queue. It knows no method of any
// protocol. With another Codec it speaks another protocol than JSON-RPC.
package rpc
