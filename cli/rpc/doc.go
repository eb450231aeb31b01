// Package rpc is one end of a JSON-RPC 2.0 connection over the standard input and output of an agent's process. It cuts
// the output into messages, gives each answer to the call that waits for it, hands requests and notifications to the
// dialect in the order they come, and writes from one queue. It knows no method of any protocol.
package rpc
