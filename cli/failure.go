package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// FailureKind sorts failures by what a user can do about them.
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

// Failure is an error that a user can act on. Its text is for users; Detail is for operators and may hold
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

// failureTexts says for each kind what happened, what helps and what to offer.
var failureTexts = map[FailureKind]struct {
	what, advice string
	action       Action
}{
	NotInstalled:   {"{agent} is not installed on this machine", "Install its CLI, then check with `ductor doctor`.", ActionOtherAgent},
	NotLoggedIn:    {"{agent} is not logged in", "Log in on the machine, then send the message again.", ActionRetry},
	LimitReached:   {"{agent} has reached its usage limit{until}", "Wait, or go on with another agent by /model.", ActionWait},
	Overloaded:     {"the model behind {agent} is overloaded", "Try again in a moment.", ActionRetry},
	TimedOut:       {"{agent} took too long and was stopped", "What it wrote so far is kept.", ActionRetry},
	Crashed:        {"{agent} ended unexpectedly ({exit})", "", ActionRetry},
	BadOutput:      {"{agent} wrote something ductor cannot read", "", ActionRetry},
	DeniedTools:    {"{agent} was not allowed to go on", "", ActionStop},
	ResumeFailed:   {"{agent} no longer knows this session", "", ActionFresh},
	NetworkDown:    {"{agent} cannot reach its model over the network", "", ActionRetry},
	UnknownModel:   {"{agent} does not know this model", "Pick another with /model.", ActionOtherAgent},
	LimitOfTurn:    {"{agent} stopped at the limit set for one turn", "", ActionStop},
	Refused:        {"{agent} refused this request", "", ActionStop},
	NoSandbox:      {"the sandbox of {agent} is not there", "Nothing runs outside of it.", ActionRetry},
	NoDirectory:    {"the working directory cannot be used", "Choose another with /cwd.", ActionStop},
	UnknownFailure: {"{agent} failed", "", ActionRetry},
}

// sandboxTexts are the texts that differ where the agent was to run in a sandbox that is known.
var sandboxTexts = map[FailureKind]struct{ what, advice string }{
	NotInstalled: {"{agent} is not installed in the sandbox {sandbox}", "Put its CLI into the image, then check with `ductor doctor`."},
	NotLoggedIn:  {"{agent} is not logged in in the sandbox {sandbox}", "Give the sandbox its log-in, or a key in its environment, then send the message again."},
	NoSandbox:    {"the sandbox {sandbox} of {agent} is not there", "Nothing runs outside of it."},
}

// Sentence says in one line what happened and what helps.
func (f *Failure) Sentence() string {
	text := failureTexts[f.kind()]
	what, advice := text.what, text.advice
	if inside, differs := sandboxTexts[f.Kind]; differs && f.Sandbox != "" {
		what, advice = inside.what, inside.advice
	}
	agent, until := string(f.Agent), ""
	if agent == "" {
		agent = "the agent"
	}
	if !f.ResetAt.IsZero() {
		until = " until " + f.ResetAt.Local().Format("Mon 15:04")
	}
	what = strings.NewReplacer("{agent}", agent, "{sandbox}", f.Sandbox.Name(), "{until}", until, "{exit}", ExitText(f.Code)).Replace(what)
	if f.Reason != "" {
		what += ": " + strings.TrimRight(firstLine(f.Reason), ".")
	}
	return strings.TrimSpace(upperFirst(what) + ". " + advice)
}

// Action is what to offer.
func (f *Failure) Action() Action { return failureTexts[f.kind()].action }

// kind is Kind if it is one of the kinds of failure.
func (f *Failure) kind() FailureKind {
	if _, known := failureTexts[f.Kind]; known {
		return f.Kind
	}
	return UnknownFailure
}

// CodeUnknown is the exit code of a program whose end its runner did not see.
const CodeUnknown = -1 << 15

// ExitText says how a program ended, by its exit code.
func ExitText(code int) string {
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
