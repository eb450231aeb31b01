package orchestrator

import (
	"time"

	"ductor/cli"
)

// RuleID is ours.
type RuleID string

// RuleKind says how a Rule compares.
type RuleKind string

// The kinds of rule, from narrow to wide.
const (
	RuleSame    RuleKind = "same"    // Value is the digest of the whole input
	RuleCommand RuleKind = "command" // Value is the whole command
	RulePrefix  RuleKind = "prefix"  // Value is the first words of a command: further words may follow that are plain, see plainWord
	RuleEdits   RuleKind = "edits"   // Value is a directory: files below it, but no hidden ones
)

// Rule lets through what a person allowed before. It counts for one tool of one agent in one conversation.
type Rule struct {
	ID           RuleID
	Conversation ConversationID
	Session      SessionID // counts in it alone; empty for a rule that lasts until it is revoked
	Agent        cli.Agent
	Tool         string
	Dir          string      // counts in this working directory only
	Sandbox      cli.Sandbox // counts there only; empty is this host
	Kind         RuleKind
	Value        string
	Text         string // exactly what it allows, as people read it, such as "Bash(git status *)"
	By           PersonID
	Created      time.Time
}

// Permissions is what the agents of a conversation may do without asking.
type Permissions struct {
	Mode cli.PermissionMode
	// BypassUntil is when a bypass ends that was chosen here; zero for none.
	BypassUntil time.Time
	Rules       []Rule // that count now: lasting ones, and those of the current session; oldest first
	// Agent is who answers in the conversation, empty if no agent can; Cannot says of each mode what it does not do.
	Agent  cli.Agent
	Cannot map[cli.PermissionMode]string
	// Tools are the list of the conversation, and OtherTools those of the configuration that count here too. Unheld says why
	// Agent cannot be held to them; empty if it can.
	Tools      cli.ToolList
	OtherTools []cli.ToolList
	Unheld     string
}
