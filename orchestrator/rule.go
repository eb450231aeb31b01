package orchestrator

import (
	"time"

	"ductor/cli"
)

// RuleID names a rule.
type RuleID string

// RuleKind selects how a Rule compares requests.
type RuleKind string

// The kinds of rule, from narrow to wide.
const (
	RuleSame    RuleKind = "same"    // Value is the digest of the whole input
	RuleCommand RuleKind = "command" // Value is the whole command
	RulePrefix  RuleKind = "prefix"  // Value is how a command begins; approval.plainWord allows more words after it
	RuleEdits   RuleKind = "edits"   // Value is a directory: matches files below it, but no hidden ones
)

// Rule allows requests like a request that a user allowed before. It applies to one tool of one agent in one
// conversation.
type Rule struct {
	ID           RuleID
	Conversation ConversationID
	// Session is the only session in which the rule applies. If it is empty, the rule lasts until a user revokes it.
	Session SessionID
	Agent   cli.Agent
	Tool    string
	Dir     string      // the only working directory that the rule applies in
	Sandbox cli.Sandbox // the only environment that the rule applies in; empty is this host
	Kind    RuleKind
	Value   string
	Text    string // exactly what it allows, in the form that users read, such as "Bash(git status *)"
	By      PersonID
	Created time.Time
}

// Permissions describes the actions for which the agents of a conversation need not ask.
type Permissions struct {
	Mode cli.PermissionMode
	// BypassUntil is the time at which a bypass ends that a user chose in this conversation. It is zero if no bypass is
	// active.
	BypassUntil time.Time
	Rules       []Rule // current rules: lasting ones, and those of the current session; oldest first
	// Agent is the agent that answers in the conversation. It is empty if no agent can. Cannot explains for each mode
	// which part Agent does not support.
	Agent  cli.Agent
	Cannot map[cli.PermissionMode]string
	// Refused are the modes in which Agent runs no turn, because nothing holds it to them. Cannot has the reasons.
	Refused []cli.PermissionMode
	// Tools is the tool list of the conversation. OtherTools are the lists of the configuration that also apply here.
	// Unheld explains why ductor cannot enforce the lists for Agent; it is empty if ductor can.
	Tools      cli.ToolList
	OtherTools []cli.ToolList
	Unheld     string
}
