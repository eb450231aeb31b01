package rpc

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Codec encodes and decodes messages. A package for an agent that does not speak JSON-RPC can supply its own Codec.
type Codec interface {
	Encode(m Outgoing) ([]byte, error)
	// Decode parses a message. It returns an error if raw is not a message. The returned message may refer to raw, so
	// it is invalid after raw has changed.
	Decode(raw []byte) (Message, error)
}

// Outgoing is a message from ductor to the program: a request, a notification or a response.
type Outgoing struct {
	Version string `json:"jsonrpc,omitempty"`
	ID      any    `json:"id,omitempty"`
	Method  string `json:"method,omitempty"`
	Params  any    `json:"params,omitempty"`
	Result  any    `json:"result,omitempty"`
	Error   *Error `json:"error,omitempty"`
}

// JSON is the Codec of JSON-RPC.
type JSON struct {
	Version string // value of the field "jsonrpc", such as "2.0"; empty to omit the field
}

// Encode implements Codec.
func (c JSON) Encode(m Outgoing) ([]byte, error) {
	m.Version = c.Version
	return json.Marshal(m)
}

// Decode implements Codec.
func (JSON) Decode(raw []byte) (m Message, err error) {
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	err = json.Unmarshal(raw, &m)
	return m, err
}
