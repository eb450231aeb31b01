package claude

import (
	"regexp"
	"strings"
	"sync"
	"time"

	"ductor/cli"
)

func (r resultFields) wasInterrupted() bool { return strings.HasPrefix(r.Terminal, "aborted_") }

// sum combines two results of the same turn. Claude prints a second result if it reads another message after the first
// result.
func sum(former, last cli.Result) cli.Result {
	last.Consumed.Add(former.Consumed)
	return last
}

// spent returns what this turn consumed. Claude reports the cost and the usage of models only as totals since the start
// of the process, so spent subtracts the previous totals.
func (m *memory) spent(r resultFields) cli.Consumption {
	turn := cli.Consumption{Turns: r.NumTurns, CostUSD: r.TotalCostUSD}
	if turn.CostUSD >= m.costUSD {
		turn.CostUSD -= m.costUSD
	}
	m.costUSD = r.TotalCostUSD
	for name, total := range r.ModelUsage {
		id := cli.ModelID(name)
		sum := cli.Usage{Input: total.Input, Output: total.Output, CacheRead: total.CacheRead, CacheWrite: total.CacheWrite}
		if used := sum.Sub(m.byModel[id]); used != (cli.Usage{}) {
			turn.AddModel(id, used)
		}
		m.byModel[id] = sum
	}
	turn.Usage = totalUsage(turn.ByModel, r.Usage)
	return turn
}

// totalUsage returns the usage of all models together, including sub-agents. If byModel is empty, it returns base, the
// usage without sub-agents.
func totalUsage(byModel map[cli.ModelID]cli.Usage, base *tokenUsage) cli.Usage {
	var sum cli.Usage
	for _, u := range byModel {
		sum = sum.Add(u)
	}
	if len(byModel) == 0 && base != nil {
		sum = cli.Usage{Input: base.Input, Output: base.Output, CacheRead: base.CacheRead, CacheWrite: base.CacheWrite}
	}
	return sum
}

// measure updates how many tokens the context contains: the input and output of the model's last call. It ignores
// sub-agents, which have their own contexts.
func (m *memory) measure(l *line) {
	switch {
	case l.Parent != "":
	case l.Type == "assistant" && l.Message != nil && l.Message.Model != synthetic && l.Message.Usage != nil:
		m.fill.Used = max(l.Message.Usage.all(), m.fill.Used)
	case l.Event != nil && l.Event.Type == "message_start" && l.Event.Message != nil && l.Event.Message.Usage != nil:
		m.fill.Used = l.Event.Message.Usage.all()
	case l.Event != nil && l.Event.Type == "message_delta" && l.Event.Usage != nil:
		m.fill.Used = max(l.Event.Usage.all(), m.fill.Used+l.Event.Usage.Output)
	case l.Type == "result":
		for name, used := range l.ModelUsage {
			if used.Window > 0 && (modelNamed(name) == m.model || m.fill.Limit == 0) {
				m.fill.Limit = used.Window
			}
		}
	}
}

func (u tokenUsage) all() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

func (p *parser) compacted(c *compactMetadata) {
	if c == nil {
		return
	}
	if c.PostTokens > 0 {
		p.mem.fill.Used = int64(c.PostTokens)
	}
	p.flow.em.Pass(cli.CompactBoundary{PreTokens: c.PreTokens})
}

// trouble contains details about the failure of a turn. Claude reports them before the turn's result line.
type trouble struct {
	apiError  string    // kind of error, from a message that Claude Code itself wrote
	resetAt   time.Time // time when an exceeded rate limit resets; otherwise zero
	network   bool      // whether a lost connection caused the last retry
	keySource string    // origin of the API key, as Claude reports it
}

// resultFailure returns the failure of a turn, or nil if the turn succeeded. It relies on the field is_error, because
// the subtype of a failed turn is often "success".
func resultFailure(r resultFields, subtype string, t trouble) *cli.Failure {
	if !r.IsError {
		return nil
	}
	if r.wasInterrupted() && r.Result == "" {
		return &cli.Failure{Agent: agent, Kind: cli.UnknownFailure, Reason: "the turn was interrupted"}
	}
	f := &cli.Failure{Agent: agent, Kind: failureKind(r, subtype, t), Reason: failureReason(r)}
	// The reason contains only the message in the API's JSON. Keep the whole text as the detail.
	if cli.InnerMessage(r.Result) != r.Result {
		f.Detail = cli.Shorten(r.Result, 2000)
	}
	if f.Kind == cli.LimitReached {
		f.ResetAt = t.resetAt
	}
	return f
}

func failureKind(r resultFields, subtype string, t trouble) cli.FailureKind {
	switch {
	case strings.HasPrefix(subtype, "error_max_"):
		return cli.LimitOfTurn
	case strings.Contains(strings.Join(r.Errors, "\n"), noConversation):
		return cli.ResumeFailed
	case r.StopReason == "refusal":
		return cli.ModelRefused
	}
	e := cli.APIError{Name: t.apiError, Text: r.Result}
	if r.APIErrorStatus != nil {
		e.Status = *r.APIErrorStatus
	}
	kind := e.Kind()
	switch {
	case kind != cli.UnknownFailure:
	case !t.resetAt.IsZero():
		return cli.LimitReached
	case t.network:
		return cli.NetworkDown
	}
	return kind
}

// forTerminal matches advice in Claude's errors that is useless outside of a terminal.
var forTerminal = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(` (?:(?:Please r|R)un (?:--model|/model|/login)\b|To configure this behavior,)[^.]*\.`)
})

// failureReason returns Claude's explanation of the failure, usually a sentence.
func failureReason(r resultFields) string {
	text := r.Result
	if text == "" {
		for _, e := range r.Errors {
			if !strings.HasPrefix(e, "[ede_diagnostic]") { // Claude's internal diagnostics
				text = e
				break
			}
		}
	}
	return cli.Shorten(forTerminal().ReplaceAllString(cli.InnerMessage(strings.TrimPrefix(text, "API Error: ")), ""), 500)
}

// exitFailure classifies the failure of a process that ended without a result, by the process's last output.
func exitFailure(f *cli.Failure) *cli.Failure {
	kind := cli.KindOfWords(f.Detail, []cli.Words{
		{Kind: cli.ResumeFailed, Any: []string{noConversation, "requires a valid session ID", "is already in use"}},
		{Kind: cli.Refused, Any: []string{"root/sudo privileges", "Invalid MCP configuration", "error: unknown option", "error: option "}},
	})
	if kind != cli.UnknownFailure {
		f.Kind, f.Reason = kind, oneLine(f.Detail)
	}
	return f
}

// noConversation is Claude's error for an unknown session.
const noConversation = "No conversation found"
