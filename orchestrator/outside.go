package orchestrator

import (
	"context"
	"strings"

	"ductor/cli"
)

// Outsider is a program of the owner that connects to ductor through MCP, for example an IDE. It uses ductor's tools
// without a turn.
type Outsider struct {
	Name   string // name of the token with which the program logs in
	Number int    // number of that token, from 1
	Owner  PersonID
	Dir    string // working directory for the program; empty means the configured default
}

// Conversation returns the conversation that belongs to this client. Its topic is negative, which does not exist in
// Telegram; see ConversationID.Shown.
func (o Outsider) Conversation() ConversationID {
	return ConversationID{Chat: int64(o.Owner), Topic: -o.Number}
}

// Agent returns the name under which users and the audit log see the client.
func (o Outsider) Agent() cli.Agent { return cli.Agent("MCP " + o.Name) }

// OutsideTurn is the prefix of turn IDs for the calls of an Outsider. The name of the token and a colon follow. The
// store does not contain such turns.
const OutsideTurn = "outside:"

// IsOutsideTurn reports whether a turn ID belongs to a call of an Outsider.
func IsOutsideTurn(id cli.TurnID) bool { return strings.HasPrefix(string(id), OutsideTurn) }

// Outsider returns the name of the Outsider from which the request comes, or "" if it comes from an agent.
func (a ApprovalRequest) Outsider() string {
	call, found := strings.CutPrefix(string(a.Turn), OutsideTurn)
	name, _, _ := strings.Cut(call, ":")
	if !found {
		return ""
	}
	return name
}

// Outsiders lets programs outside of turns use ductor's tools. *conversation.Engine implements it.
type Outsiders interface {
	// OpenOutside returns an ActiveTurn for one call of an Outsider. Its permission mode is at most ask: the owner
	// decides each request in the chat. AskUser and AskFor accept this turn until the caller calls end. end waits until
	// no agent works for the call any more. ctx limits the call.
	OpenOutside(ctx context.Context, o Outsider) (_ ActiveTurn, end func(), err error)
}
