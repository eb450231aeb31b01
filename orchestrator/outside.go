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
	Number int    // number of the token, from 1
	Owner  PersonID
	Dir    string // working directory for the program; empty means the configured default
}

// Conversation returns the conversation that belongs to the program. Its ID has a negative topic, so it differs from
// the IDs of all conversations in Telegram; see ConversationID.Shown.
func (o Outsider) Conversation() ConversationID {
	return ConversationID{Chat: int64(o.Owner), Topic: -o.Number}
}

// Agent returns the name that users and the audit log see for the program.
func (o Outsider) Agent() cli.Agent { return cli.Agent("MCP " + o.Name) }

// OutsideTurn is the prefix of turn IDs for the calls of an Outsider. The name of the token and a colon follow the
// prefix. The store does not contain these turns.
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
	// OpenOutside returns an ActiveTurn for one call of an Outsider. The call ends when ctx is done. The permission
	// mode is at most ask, so the owner decides each request in the chat. The ID of the turn is valid for AskUser and
	// AskFor until the caller calls end. end waits until no agent works for the call any more. If agents may not work
	// in the Outsider's directory any more, OpenOutside returns a *cli.Failure with the kind cli.NoDirectory.
	OpenOutside(ctx context.Context, o Outsider) (_ ActiveTurn, end func(), err error)
}
