// Package rpc implements one end of a JSON-RPC 2.0 connection over the standard input and output of an agent's process.
// It splits the output into messages. It passes answers to the calls that wait for them. It passes requests and
// notifications to a Handler, in order. It writes all messages from a single queue.
//
// The package knows no methods of any protocol. A Codec can replace JSON-RPC by another protocol.
package rpc
