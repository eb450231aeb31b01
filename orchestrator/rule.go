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
	RulePrefix  RuleKind = "prefix"  // Value is the beginning of a command; approval.plainWord limits further words
	RuleEdits   RuleKind = "edits"   // Value is a directory; the rule allows changes of visible files below it
)

// Rule allows requests that are like a request that a user allowed before. It applies to one tool of one agent in one
// conversation.
type Rule struct {
	ID           RuleID
	Conversation ConversationID
	// Session is the only session in which the rule applies. If Session is empty, the rule applies until a user revokes
	// it.
	Session SessionID
	Agent   cli.Agent
	Tool    string
	Dir     string      // the only working directory in which the rule applies
	Sandbox cli.Sandbox // the only environment in which the rule applies; empty means this host
	Kind    RuleKind
	Value   string
	Text    string // the rule in words for users, such as "Bash(git status *)"
	By      PersonID
	Created time.Time
}

// Permissions describes the actions that the agents of a conversation may do without asking.
type Permissions struct {
	Mode cli.PermissionMode
	// BypassUntil is the end of the conversation's bypass. It is zero if no bypass is active.
	BypassUntil time.Time
	Rules       []Rule // rules without a session, and rules of the current session; oldest first
	// Agent is the agent of the conversation, or empty if no agent is usable. Cannot explains, for each mode, which
	// part of the mode Agent does not support.
	Agent  cli.Agent
	Cannot map[cli.PermissionMode]string
	// Refused are the modes in which ductor runs no turn of Agent, because it cannot enforce them. Cannot has the
	// reasons.
	Refused []cli.PermissionMode
	// Tools is the tool list of the conversation. OtherTools are the lists of the configuration that also apply here.
	// Unheld explains why ductor cannot enforce the lists for Agent; it is empty if ductor can enforce them.
	Tools      cli.ToolList
	OtherTools []cli.ToolList
	Unheld     string
}
