package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// FailureKind sorts failures by what a person can do about them.
type FailureKind string

// The kinds of failure. Each has one sentence and one Action.
const (
	NotInstalled   FailureKind = "not-installed"
	NotLoggedIn    FailureKind = "not-logged-in"
	LimitReached   FailureKind = "rate-limited" // ResetAt is set where known
	Overloaded     FailureKind = "overloaded"
	TimedOut       FailureKind = "timeout" // partial output is kept
	Crashed        FailureKind = "crashed" // Code and Detail (the tail of stderr) are set
	BadOutput      FailureKind = "bad-output"
	DeniedTools    FailureKind = "denied"
	ResumeFailed   FailureKind = "resume-failed"
	NetworkDown    FailureKind = "network"
	UnknownModel   FailureKind = "unknown-model"
	LimitOfTurn    FailureKind = "turn-limit" // max turns or budget reached
	Refused        FailureKind = "refused"    // the request itself is refused: by the model, or as invalid
	NoSandbox      FailureKind = "sandbox"    // the sandbox cannot be had or was lost; Reason says what helps
	NoDirectory    FailureKind = "directory"  // the working directory is gone, or leads outside of the roots
	UnknownFailure FailureKind = "unknown"
)

// Action is what to offer after a failure. Nothing is repeated without being asked.
type Action string

// The actions. One per failure.
const (
	ActionRetry      Action = "retry"
	ActionWait       Action = "wait"
	ActionFresh      Action = "fresh" // a new session with the history injected
	ActionOtherAgent Action = "other-agent"
	ActionStop       Action = "stop"
)

// Failure is an error a person can act on. Its text is for people; Detail is for operators and may hold
// raw agent output, so it passes the secret scrubber before it goes anywhere.
type Failure struct {
	Kind    FailureKind
	Agent   Agent
	Sandbox Sandbox   // where it was to run; empty for this host, or where that is not known
	Reason  string    // the agent's own sentence, shortened; may be empty
	ResetAt time.Time // LimitReached: when it ends; zero where unknown
	Code    int       // Crashed: the exit code, negative for a signal, or CodeUnknown
	Detail  string    // stderr tail or raw output, shortened
	Cause   error     // what lies beneath, for errors.Is; may be nil
}

// Failf makes a Failure of kind with a formatted reason.
func Failf(kind FailureKind, agent Agent, format string, args ...any) *Failure {
	return &Failure{Kind: kind, Agent: agent, Reason: fmt.Sprintf(format, args...)}
}

// AsFailure returns the Failure in err's chain, or an UnknownFailure around err. A nil err gives nil.
func AsFailure(agent Agent, err error) *Failure {
	if err == nil {
		return nil
	}
	var f *Failure
	if errors.As(err, &f) {
		if f.Agent == "" { // who failed did not know for whom
			named := *f
			named.Agent = agent
			return &named
		}
		return f
	}
	return &Failure{Kind: UnknownFailure, Agent: agent, Reason: err.Error(), Cause: err}
}

// Error is Sentence: one sentence for the chat.
func (f *Failure) Error() string { return f.Sentence() }

// Unwrap gives Cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Sentence says in one line what happened and what helps.
func (f *Failure) Sentence() string {
	agent := string(f.Agent)
	if agent == "" {
		agent = "the agent"
	}
	var s, advice string
	switch f.Kind {
	case NotInstalled:
		s = fmt.Sprintf("%s is not installed on this machine", agent)
		advice = "Install its CLI, then check with `ductor doctor`."
		if f.Sandbox != "" {
			s = fmt.Sprintf("%s is not installed in the sandbox %s", agent, f.Sandbox.Name())
			advice = "Put its CLI into the image, then check with `ductor doctor`."
		}
	case NotLoggedIn:
		s = fmt.Sprintf("%s is not logged in", agent)
		advice = "Log in on the machine, then send the message again."
		if f.Sandbox != "" {
			s = fmt.Sprintf("%s is not logged in in the sandbox %s", agent, f.Sandbox.Name())
			advice = "Give the sandbox its log-in, or a key in its environment, then send the message again."
		}
	case LimitReached:
		s = fmt.Sprintf("%s has reached its usage limit", agent)
		if !f.ResetAt.IsZero() {
			s += " until " + f.ResetAt.Local().Format("Mon 15:04")
		}
		advice = "Wait, or go on with another agent by /model."
	case Overloaded:
		s = fmt.Sprintf("the model behind %s is overloaded", agent)
		advice = "Try again in a moment."
	case TimedOut:
		s = fmt.Sprintf("%s took too long and was stopped", agent)
		advice = "What it wrote so far is kept."
	case Crashed:
		s = fmt.Sprintf("%s ended unexpectedly (%s)", agent, exitText(f.Code))
	case BadOutput:
		s = fmt.Sprintf("%s wrote something ductor cannot read", agent)
	case DeniedTools:
		s = fmt.Sprintf("%s was not allowed to go on", agent)
	case ResumeFailed:
		s = fmt.Sprintf("%s no longer knows this session", agent)
	case NetworkDown:
		s = fmt.Sprintf("%s cannot reach its model over the network", agent)
	case UnknownModel:
		s = fmt.Sprintf("%s does not know this model", agent)
		advice = "Pick another with /model."
	case LimitOfTurn:
		s = fmt.Sprintf("%s stopped at the limit set for one turn", agent)
	case Refused:
		s = fmt.Sprintf("%s refused this request", agent)
	case NoSandbox:
		s = fmt.Sprintf("the sandbox of %s is not there", agent)
		if f.Sandbox != "" {
			s = fmt.Sprintf("the sandbox %s of %s is not there", f.Sandbox.Name(), agent)
		}
		advice = "Nothing runs outside of it."
	case NoDirectory:
		s = "the working directory cannot be used"
		advice = "Choose another with /cwd."
	default:
		s = fmt.Sprintf("%s failed", agent)
	}
	if f.Reason != "" {
		s += ": " + strings.TrimRight(firstLine(f.Reason), ".")
	}
	return strings.TrimSpace(upperFirst(s) + ". " + advice)
}

// Action is what to offer.
func (f *Failure) Action() Action {
	switch f.Kind {
	case NotInstalled, UnknownModel:
		return ActionOtherAgent
	case LimitReached:
		return ActionWait
	case ResumeFailed:
		return ActionFresh
	case DeniedTools, LimitOfTurn, Refused, NoDirectory:
		return ActionStop
	default:
		return ActionRetry
	}
}

// CodeUnknown is the exit code of a program whose end its supervisor did not see.
const CodeUnknown = -1 << 15

func exitText(code int) string {
	if code == CodeUnknown {
		return "its end was not seen"
	}
	if code < 0 {
		return fmt.Sprintf("signal %d", -code)
	}
	return fmt.Sprintf("exit code %d", code)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return Shorten(s, 300)
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Shorten cuts s to at most limit bytes at a character boundary and marks the cut with an ellipsis.
func Shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit - len("…")
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:max(cut, 0)] + "…"
}
