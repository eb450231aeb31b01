package orchestrator

import (
	"slices"
	"strings"
	"time"

	"ductor/cli"
)

// Action is a button below a turn that did not succeed. ActionLogIn and ActionDrop do not run the prompt. All other
// actions run the prompt again; a user can choose only one of them, and only once. The store contains these strings.
type Action string

// Action values.
const (
	ActionAgain   Action = "again"   // runs the prompt in the same session
	ActionFresh   Action = "fresh"   // runs the prompt in a new session of the agent, which first gets the history
	ActionSummary Action = "summary" // like ActionFresh, but with a summary of the history
	ActionCompact Action = "compact" // runs the prompt in the same session, after the agent has compacted its context
	ActionLater   Action = "later"   // runs the prompt once, as a job at the time Recovery.At
	// ActionHandOff runs the prompt with another agent, Recovery.Other, in the same session of ductor.
	ActionHandOff Action = "handoff"
	ActionLogIn   Action = "log-in" // shows how to log in to the account Recovery.Who
	ActionLift    Action = "lift"   // runs the prompt in the same session, after an owner removed all budgets for today
	ActionDrop    Action = "drop"   // removes the buttons
)

const (
	accountAction = "account/"
	modeAction    = "mode/"
)

// ActionAccount returns the action that switches the agent to another account in this conversation and runs the prompt
// again.
func ActionAccount(account cli.Account) Action { return Action(accountAction + account) }

// Account returns the account of an action that ActionAccount returned. For any other action it returns false.
func (a Action) Account() (cli.Account, bool) {
	account, ok := strings.CutPrefix(string(a), accountAction)
	return cli.Account(account), ok
}

// ActionMode returns the action that switches this conversation to another permission mode and runs the prompt again.
func ActionMode(mode cli.PermissionMode) Action { return Action(modeAction + mode) }

// Mode returns the permission mode of an action that ActionMode returned. For any other action it returns false.
func (a Action) Mode() (cli.PermissionMode, bool) {
	mode, ok := strings.CutPrefix(string(a), modeAction)
	return cli.PermissionMode(mode), ok
}

// Apply changes the account or the permission mode of the conversation for an action from ActionAccount or ActionMode.
// For other actions, it does nothing.
func (a Action) Apply(c *Conversation, t Turn) {
	if account, ok := a.Account(); ok {
		c.Settings.Accounts = c.Settings.Accounts.With(t.Agent, account)
	}
	if mode, ok := a.Mode(); ok {
		c.SetMode(mode, t.Sandbox, time.Time{})
	}
}

// Audit returns the audit entry for the change that Apply makes. It returns nil if Apply does not change the permission
// mode.
func (a Action) Audit(by PersonID) []AuditEntry {
	if mode, ok := a.Mode(); ok {
		return []AuditEntry{ModeAudit(string(mode), by)}
	}
	return nil
}

// Recovery describes the actions that ductor offers after a turn that did not succeed, and the substitution that it
// made in the turn.
type Recovery struct {
	Replaced cli.Agent       `json:"replaced,omitempty"` // the agent that a substitute replaced
	Kind     cli.FailureKind `json:"kind,omitempty"`     // the kind of failure; empty if the turn was interrupted
	Offer    []Action        `json:"offers,omitempty"`   // offered actions, in the order of the buttons
	At       time.Time       `json:"-"`                  // when a job runs the prompt for ActionLater
	Other    cli.Agent       `json:"other,omitempty"`    // the agent for ActionHandOff
	Who      LogInID         `json:"who,omitempty"`      // the account to which ActionLogIn logs in
	Raw      string          `json:"raw,omitempty"`      // the agent's output, shortened, if ductor could not parse it
}

// Repeatable returns a Recovery that only offers to run the prompt again.
func Repeatable() Recovery { return Recovery{Offer: []Action{ActionAgain}} }

// Automatic is ductor's reaction to a turn that failed before its agent ran anything. ductor does not ask a user first.
type Automatic string

// Values of type Automatic.
const (
	AutomaticNothing Automatic = ""
	AutomaticOnce    Automatic = "once" // runs the turn once more
	// AutomaticRetries runs the turn a few more times, with a pause before each. The user can stop the retries during a
	// pause.
	AutomaticRetries    Automatic = "retries"
	AutomaticSubstitute Automatic = "substitute" // runs the turn with another agent, which the configuration names
	AutomaticConfigured Automatic = "configured" // depends on the configured LimitPolicy
)

// LimitPolicy selects how ductor handles a prompt if the agent has reached a usage limit.
type LimitPolicy string

// LimitPolicy values. LimitAsk is the default.
const (
	LimitAsk     LimitPolicy = "ask"
	LimitWait    LimitPolicy = "wait"    // creates a job that runs the prompt when the limit ends
	LimitHandOff LimitPolicy = "handoff" // runs the prompt with another agent, which the configuration names
)

// Remedy is ductor's reaction to one kind of failure, and the buttons that it offers.
type Remedy struct {
	Automatic Automatic
	Offer     []Action // buttons to offer, except those that are impossible for the turn
}

// RemedyOf returns the remedy for a kind of failure.
func RemedyOf(kind cli.FailureKind) Remedy {
	switch kind {
	case cli.LimitReached:
		return Remedy{AutomaticConfigured, []Action{ActionLater, ActionHandOff, ActionAgain, ActionDrop}}
	case cli.Overloaded, cli.APIFailed:
		return Remedy{AutomaticRetries, []Action{ActionAgain, ActionHandOff}}
	case cli.Forbidden:
		return Remedy{AutomaticNothing, []Action{ActionHandOff, ActionAgain}}
	case cli.Crashed, cli.TimedOut:
		return Remedy{AutomaticOnce, []Action{ActionAgain}}
	case cli.NotInstalled:
		return Remedy{AutomaticSubstitute, []Action{ActionHandOff, ActionAgain}}
	case cli.NotLoggedIn:
		return Remedy{AutomaticSubstitute, []Action{ActionLogIn, ActionHandOff, ActionAgain}}
	case cli.OverBudget:
		return Remedy{AutomaticNothing, []Action{ActionLift, ActionAgain}}
	case cli.ContextFull:
		return Remedy{AutomaticNothing, []Action{ActionCompact, ActionSummary}}
	case cli.ResumeFailed:
		return Remedy{AutomaticNothing, []Action{ActionFresh, ActionAgain}}
	case cli.DeniedTools, cli.LimitOfTurn, cli.AnswerCut, cli.ModelRefused, cli.Refused:
		return Remedy{}
	}
	return Remedy{AutomaticNothing, []Action{ActionAgain}}
}

// Offers reports whether a user can choose an action.
func (r Recovery) Offers(a Action) bool { return slices.Contains(r.Offer, a) }
