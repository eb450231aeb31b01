package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ductor/lang"
)

// FailureKind sorts failures by what a user can do about them.
type FailureKind string

// The kinds of failure. Each has one sentence.
const (
	NotInstalled   FailureKind = "not-installed"
	NotLoggedIn    FailureKind = "not-logged-in"
	LimitReached   FailureKind = "rate-limited" // ResetAt is set where known
	Forbidden      FailureKind = "forbidden"    // the account may not do it
	Overloaded     FailureKind = "overloaded"
	APIFailed      FailureKind = "api-failed" // the model's API has an error of its own
	TimedOut       FailureKind = "timeout"    // partial output is kept
	Crashed        FailureKind = "crashed"    // Code and Detail (the tail of stderr) are set
	BadOutput      FailureKind = "bad-output"
	DeniedTools    FailureKind = "denied"
	ResumeFailed   FailureKind = "resume-failed"
	ContextFull    FailureKind = "context-full" // the conversation is longer than the model reads
	NetworkDown    FailureKind = "network"
	UnknownModel   FailureKind = "unknown-model"
	OverBudget     FailureKind = "budget"      // a budget is spent; Reason says which
	LimitOfTurn    FailureKind = "turn-limit"  // max turns or budget reached
	Refused        FailureKind = "refused"     // the request itself is refused: as invalid, or by the agent
	AnswerCut      FailureKind = "cut"         // the answer is longer than the model may write; what there is of it is kept
	ModelRefused   FailureKind = "no-answer"   // the model, or a filter behind it, refused to answer
	NoSandbox      FailureKind = "sandbox"     // the sandbox cannot be had or was lost; Reason says what helps
	NoDirectory    FailureKind = "directory"   // the working directory is gone, or leads outside of the roots
	FailsOften     FailureKind = "fails-often" // Code turns in a row, Cause is the last; it is left alone until ResetAt
	UnknownFailure FailureKind = "unknown"
)

// Failure is an error that a user can act on. Its text is for users; Detail is for operators and may hold
// raw agent output, so it passes the secret scrubber before it goes anywhere.
type Failure struct {
	Kind    FailureKind
	Agent   Agent
	Sandbox Sandbox   // where it was to run; empty for this host, or where that is not known
	Reason  string    // the agent's own sentence, shortened; may be empty
	ResetAt time.Time // LimitReached and FailsOften: when it ends; zero where unknown
	Code    int       // Crashed: the exit code, negative for a signal, or CodeUnknown; FailsOften: how many turns
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

// Error is Sentence in English.
func (f *Failure) Error() string { return f.Sentence(lang.Printer{}) }

// Unwrap gives Cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Sentence says in one line what happened and what helps.
func (f *Failure) Sentence(p lang.Printer) string {
	what, help := f.what(p), ""
	if key := f.help(); key != "" && !f.advised() {
		help = " " + p.Text(key)
	}
	if f.Reason != "" {
		what = p.Text("common.because", what, strings.TrimRight(firstLine(f.Reason), "."))
	}
	return upperFirst(what) + "." + help
}

// what says what happened.
func (f *Failure) what(p lang.Printer) string {
	agent := f.Agent.Name()
	if agent == "" {
		agent = p.Text("common.the-agent")
	}
	there := f.Sandbox.Name()
	switch f.Kind {
	case NotInstalled:
		if there != "" {
			return p.Text("failure.not-installed-there", agent, there)
		}
		return p.Text("failure.not-installed", agent)
	case NotLoggedIn:
		if there != "" {
			return p.Text("failure.not-logged-in-there", agent, there)
		}
		return p.Text("failure.not-logged-in", agent)
	case LimitReached:
		if !f.ResetAt.IsZero() {
			return p.Text("failure.limit-until", agent, p.Weekday(f.ResetAt.Local()))
		}
		return p.Text("failure.limit", agent)
	case NoSandbox:
		if there != "" {
			return p.Text("failure.no-sandbox-named", agent, there)
		}
		return p.Text("failure.no-sandbox", agent)
	case Crashed:
		return p.Text("failure.crashed", agent, ExitText(p, f.Code))
	case FailsOften:
		what := p.Text("failure.often", agent, f.Code, p.Weekday(f.ResetAt.Local()))
		var last *Failure
		if errors.As(f.Cause, &last) {
			what = p.Text("common.because", what, last.what(p))
		}
		return what
	}
	return f.whatElse(p, agent)
}

// whatElse is what for the kinds that need no more than the agent's name.
func (f *Failure) whatElse(p lang.Printer, agent string) string {
	switch f.Kind {
	case Forbidden:
		return p.Text("failure.forbidden", agent)
	case Overloaded:
		return p.Text("failure.overloaded", agent)
	case APIFailed:
		return p.Text("failure.api-failed", agent)
	case TimedOut:
		return p.Text("failure.timeout", agent)
	case BadOutput:
		return p.Text("failure.bad-output", agent)
	case DeniedTools:
		return p.Text("failure.denied", agent)
	case ResumeFailed:
		return p.Text("failure.resume-failed", agent)
	case ContextFull:
		return p.Text("failure.context-full", agent)
	case NetworkDown:
		return p.Text("failure.network", agent)
	case UnknownModel:
		return p.Text("failure.unknown-model", agent)
	case LimitOfTurn:
		return p.Text("failure.turn-limit", agent)
	case Refused:
		return p.Text("failure.refused", agent)
	case AnswerCut:
		return p.Text("failure.cut")
	case ModelRefused:
		return p.Text("failure.model-refused")
	case NoDirectory:
		return p.Text("failure.no-directory")
	case OverBudget:
		return p.Text("failure.over-budget")
	}
	return p.Text("failure.unknown", agent)
}

// help says what helps besides the buttons that follow a failure; empty for nothing.
func (f *Failure) help() lang.Key {
	var there lang.Key
	if f.Sandbox.Name() != "" {
		there = map[FailureKind]lang.Key{
			NotInstalled: "failure.not-installed-there-help", NotLoggedIn: "failure.not-logged-in-there-help",
		}[f.Kind]
	}
	return cmp.Or(there, map[FailureKind]lang.Key{
		NotInstalled: "failure.not-installed-help", NotLoggedIn: "failure.not-logged-in-help",
		UnknownModel: "failure.unknown-model-help", NoSandbox: "failure.no-sandbox-help", NoDirectory: "failure.no-directory-help",
		OverBudget: "failure.over-budget-help", DeniedTools: "failure.denied-help", LimitOfTurn: "failure.continue-help", AnswerCut: "failure.continue-help",
	}[f.Kind])
}

// CodeUnknown is the exit code of a program whose end its runner did not see.
const CodeUnknown = -1 << 15

// ExitText says how a program ended, by its exit code.
func ExitText(p lang.Printer, code int) string {
	switch {
	case code == CodeUnknown:
		return p.Text("failure.end-unseen")
	case code < 0:
		return p.Text("failure.signal", -code)
	}
	return p.Text("failure.exit-code", code)
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

// Name is how texts write the agent.
func (a Agent) Name() string { return upperFirst(string(a)) }

// advised says whether the agent's own sentence says what helps. Two pieces of advice are one too many.
func (f *Failure) advised() bool {
	word, _, _ := strings.Cut(f.Reason, " ")
	return (f.Kind == NotInstalled || f.Kind == NotLoggedIn) && f.Sandbox == "" && slices.Contains([]string{"Install", "Log", "Run", "Set", "Correct"}, word)
}
