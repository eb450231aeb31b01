package orchestrator

import (
	"slices"
	"time"

	"ductor/cli"
)

// Action is what a user can choose after a turn that did not go well. All but ActionLogIn and ActionDrop run its prompt once more; of those
// one is taken, once. The values are stored.
type Action string

// The actions.
const (
	ActionAgain   Action = "again"   // in the same session
	ActionFresh   Action = "fresh"   // in a new session of the agent, which is told the history
	ActionSummary Action = "summary" // as ActionFresh, where a model summarizes the history
	ActionCompact Action = "compact" // in the same session, after the agent shortened its context
	ActionLater   Action = "later"   // at Recovery.At, as a job that runs once
	ActionHandOff Action = "handoff" // by Recovery.Other, which goes on in the session
	ActionLogIn   Action = "log-in"  // nothing: Recovery.Who is logged in, by a code that the owner gets
	ActionLift    Action = "lift"    // in the same session, after the owner lifted all budgets for today
	ActionDrop    Action = "drop"    // nothing: the buttons disappear
)

// Recovery is what follows a turn that did not go well.
type Recovery struct {
	Kind  cli.FailureKind `json:"kind,omitempty"`   // empty where the turn was interrupted
	Offer []Action        `json:"offers,omitempty"` // in the order of the buttons
	At    time.Time       `json:"-"`                // of ActionLater
	Other cli.Agent       `json:"other,omitempty"`  // of ActionHandOff
	Who   cli.Agent       `json:"who,omitempty"`    // of ActionLogIn
	Raw   string          `json:"raw,omitempty"`    // what an agent printed that ductor cannot read, shortened
}

// Repeatable is the recovery of a turn that may run once more, and of which nothing else is known.
func Repeatable() Recovery { return Recovery{Offer: []Action{ActionAgain}} }

// Automatic says what follows a failure of a turn of which nothing ran, without asking.
type Automatic string

// What follows without asking.
const (
	AutomaticNothing    Automatic = ""
	AutomaticOnce       Automatic = "once"       // the turn runs once more
	AutomaticRetries    Automatic = "retries"    // a few times, each after a pause that the user can end
	AutomaticSubstitute Automatic = "substitute" // a configured agent runs it
	AutomaticConfigured Automatic = "configured" // as LimitPolicy says
)

// LimitPolicy says what follows when an agent has reached its usage limit and nothing of the turn ran.
type LimitPolicy string

// The policies. LimitAsk is the default.
const (
	LimitAsk     LimitPolicy = "ask"
	LimitWait    LimitPolicy = "wait"    // a job runs the prompt when the limit ends
	LimitHandOff LimitPolicy = "handoff" // a configured agent runs it
)

// Remedy is one row of the table of what follows a failure.
type Remedy struct {
	Automatic Automatic
	Offer     []Action // those that can be done of the turn are offered
}

// RemedyOf is the row of a kind of failure.
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

// Offers says whether a user can choose an action.
func (r Recovery) Offers(a Action) bool { return slices.Contains(r.Offer, a) }
