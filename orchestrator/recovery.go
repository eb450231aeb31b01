package orchestrator

import (
	"slices"
	"strings"
	"time"

	"ductor/cli"
)

// Action is a button below a turn that did not succeed. ActionLogIn and ActionDrop do not run the prompt again. A user
// can choose only one of the other actions, once. The store contains the values.
type Action string

// The actions.
const (
	ActionAgain   Action = "again"   // runs the prompt in the same session
	ActionFresh   Action = "fresh"   // runs the prompt in a new session of the agent, which gets the history
	ActionSummary Action = "summary" // like ActionFresh, with a history that a model summarized
	ActionCompact Action = "compact" // runs the prompt in the same session, after the agent shortened its context
	ActionLater   Action = "later"   // runs the prompt at Recovery.At, as a one-time job
	ActionHandOff Action = "handoff" // runs the prompt with the agent Recovery.Other, which continues the session
	ActionLogIn   Action = "log-in"  // shows how to log in Recovery.Who; see side.LoginDesk
	ActionLift    Action = "lift"    // runs the prompt in the same session, after an owner lifted all budgets for today
	ActionDrop    Action = "drop"    // removes the buttons
)

// accountAction begins the ActionAccount of each account.
const accountAction = "account/"

// ActionAccount returns the action that runs the prompt with an account of its agent. The conversation then uses that
// account.
func ActionAccount(account cli.Account) Action { return Action(accountAction + account) }

// Account returns the account of an ActionAccount. It returns false for another action.
func (a Action) Account() (cli.Account, bool) {
	account, ok := strings.CutPrefix(string(a), accountAction)
	return cli.Account(account), ok
}

// Recovery describes the user's options after a turn that did not succeed.
type Recovery struct {
	Kind  cli.FailureKind `json:"kind,omitempty"`   // empty if the turn was interrupted
	Offer []Action        `json:"offers,omitempty"` // offered actions, in the order of the buttons
	At    time.Time       `json:"-"`                // when ActionLater runs the prompt
	Other cli.Agent       `json:"other,omitempty"`  // the agent for ActionHandOff
	Who   LogInID         `json:"who,omitempty"`    // the log-in for ActionLogIn
	Raw   string          `json:"raw,omitempty"`    // shortened output of an agent that ductor could not parse
}

// Repeatable returns the Recovery of a turn that may run again, if nothing else is known about the turn.
func Repeatable() Recovery { return Recovery{Offer: []Action{ActionAgain}} }

// Automatic is ductor's reaction, without asking a user, to a turn that failed before its agent ran anything.
type Automatic string

// The automatic actions.
const (
	AutomaticNothing Automatic = ""
	AutomaticOnce    Automatic = "once" // runs the turn once more
	// AutomaticRetries runs the turn a few more times, each time after a pause, which the user can shorten.
	AutomaticRetries    Automatic = "retries"
	AutomaticSubstitute Automatic = "substitute" // runs the turn with a configured agent
	AutomaticConfigured Automatic = "configured" // follows LimitPolicy
)

// LimitPolicy selects the reaction to a turn that did not run because its agent had reached a usage limit.
type LimitPolicy string

// The policies. LimitAsk is the default.
const (
	LimitAsk     LimitPolicy = "ask"
	LimitWait    LimitPolicy = "wait"    // a job runs the prompt when the limit ends
	LimitHandOff LimitPolicy = "handoff" // a configured agent runs the prompt
)

// Remedy is the reaction to one kind of failure.
type Remedy struct {
	Automatic Automatic
	Offer     []Action // the caller removes actions that are impossible for the turn
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
	case cli.DeniedTools, cli.LimitOfTurn, cli.AnswerCut, cli.ModelRefused, cli.Refused, cli.NoDirectory:
		return Remedy{}
	}
	return Remedy{AutomaticNothing, []Action{ActionAgain}}
}

// Offers reports whether a user can choose an action.
func (r Recovery) Offers(a Action) bool { return slices.Contains(r.Offer, a) }
