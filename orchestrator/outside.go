package orchestrator

import (
	"context"
	"strings"

	"ductor/cli"
)

// Outsider is an MCP client of the owner outside of turns, such as an IDE.
type Outsider struct {
	Name   string // of its token
	Number int    // of its token, from 1
	Owner  PersonID
	Dir    string // where it works; empty means the configured default
}

// Conversation returns the client's own conversation. No chat uses it; see ConversationID.Shown.
func (o Outsider) Conversation() ConversationID {
	return ConversationID{Chat: int64(o.Owner), Topic: -o.Number}
}

// Agent returns the client's name for users and for the audit.
func (o Outsider) Agent() cli.Agent { return cli.Agent("MCP " + o.Name) }

// OutsideTurn begins the turn IDs that stand for the calls of an Outsider. The name of the Outsider's token and another
// colon follow it. The store has no such turns.
const OutsideTurn = "outside:"

// IsOutsideTurn reports whether a turn ID stands for a call of an Outsider.
func IsOutsideTurn(id cli.TurnID) bool { return strings.HasPrefix(string(id), OutsideTurn) }

// Outsider returns the name of the Outsider on whose behalf the agent makes the request. It returns "" for other
// requests.
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
	// OpenOutside returns an ActiveTurn that stands for one call of an Outsider. Its rights are at most those of ask,
	// and the owner decides each request in the chat. AskUser and AskFor accept it until the caller calls end. end
	// waits for agents that work for the call. The context limits the call.
	OpenOutside(ctx context.Context, o Outsider) (_ ActiveTurn, end func(), err error)
}
