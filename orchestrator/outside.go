package orchestrator

import (
	"context"
	"strings"

	"ductor/cli"
)

// Outsider is an MCP client of the owner outside of turns, such as an IDE.
type Outsider struct {
	Name   string // name of the client's token
	Number int    // number of the client's token, from 1
	Owner  PersonID
	Dir    string // the client's directory; empty means the configured default
}

// Conversation returns the client's own conversation. Telegram never uses its topic; see ConversationID.Shown.
func (o Outsider) Conversation() ConversationID {
	return ConversationID{Chat: int64(o.Owner), Topic: -o.Number}
}

// Agent returns the client's name for users and for the audit.
func (o Outsider) Agent() cli.Agent { return cli.Agent("MCP " + o.Name) }

// OutsideTurn is the prefix of turn IDs for the calls of an Outsider. The name of the Outsider's token and another
// colon follow. The store has no such turns.
const OutsideTurn = "outside:"

// IsOutsideTurn reports whether a turn ID stands for a call of an Outsider.
func IsOutsideTurn(id cli.TurnID) bool { return strings.HasPrefix(string(id), OutsideTurn) }

// Outsider returns the name of the Outsider that makes the request. It returns "" for other requests.
func (a ApprovalRequest) Outsider() string {
	call, found := strings.CutPrefix(string(a.Turn), OutsideTurn)
	name, _, _ := strings.Cut(call, ":")
	if !found {
		return ""
	}
	return name
}

// Outsiders lets ductor's tools work for clients outside of turns. *conversation.Engine implements it.
type Outsiders interface {
	// OpenOutside returns an ActiveTurn that represents one call of an Outsider. Its rights are at most the rights of
	// ask mode, and the owner decides each request in the chat. AskUser and AskFor accept the turn until the caller
	// calls end. end waits for agents that work for the call. ctx limits the call.
	OpenOutside(ctx context.Context, o Outsider) (_ ActiveTurn, end func(), err error)
}
