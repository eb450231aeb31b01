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

// Rule allows requests that a user allowed before. It applies to one tool of one agent in one conversation.
type Rule struct {
	ID           RuleID
	Conversation ConversationID
	// The only session that the rule applies in; empty for a rule that lasts until a user revokes it.
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

// Permissions describes the actions that the agents of a conversation may take without asking.
type Permissions struct {
	Mode cli.PermissionMode
	// BypassUntil is when a bypass that a user chose here ends; zero for none.
	BypassUntil time.Time
	Rules       []Rule // current rules: lasting ones, and those of the current session; oldest first
	// Agent answers in the conversation; empty if no agent can. Cannot explains for each mode which part Agent does not
	// support.
	Agent  cli.Agent
	Cannot map[cli.PermissionMode]string
	// Tools is the tool list of the conversation, and OtherTools are the lists of the configuration that also apply
	// here. Unheld explains why ductor cannot enforce them for Agent; empty if it can.
	Tools      cli.ToolList
	OtherTools []cli.ToolList
	Unheld     string
}
