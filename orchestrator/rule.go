package orchestrator

import (
	"time"

	"ductor/cli"
)

// RuleID identifies a rule.
type RuleID string

// RuleKind selects which requests a Rule matches.
type RuleKind string

// RuleKind values, from the most specific to the most general.
const (
	RuleSame    RuleKind = "same"    // Value is the hash of the tool's input, which must be identical
	RuleCommand RuleKind = "command" // Value is the whole command, which must be identical
	// Value is the beginning of the command. Further words are allowed if they are plain; see approval.plainWord.
	RulePrefix RuleKind = "prefix"
	RuleEdits  RuleKind = "edits" // Value is a directory; agents may edit files below it, except hidden ones
)

// Rule allows requests like one that a user has allowed. It applies to one tool of one agent in one conversation.
type Rule struct {
	ID           RuleID
	Conversation ConversationID
	// Session is the only session in which the rule applies. If it is empty, the rule applies in all sessions until a
	// user revokes it.
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
	Rules       []Rule // rules for all sessions and rules for the current session; oldest first
	// Agent is the agent of the conversation, or empty if no agent is usable. Agents do not support all permission
	// modes completely. For each mode that Agent does not support completely, Cannot contains an explanation.
	Agent  cli.Agent
	Cannot map[cli.PermissionMode]string
	// Refused contains the permission modes that ductor cannot enforce with Agent. ductor runs no turns in these modes.
	// For each of them, Cannot contains the reason.
	Refused []cli.PermissionMode
	// Tools contains the lists of allowed and forbidden tools that users chose for the conversation. OtherTools
	// contains the lists from the configuration. All lists apply. If ductor cannot make Agent respect the lists, Unheld
	// is the reason. Otherwise Unheld is empty.
	Tools      cli.ToolList
	OtherTools []cli.ToolList
	Unheld     string
}
