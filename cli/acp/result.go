package acp

import (
	"encoding/json"

	"ductor/cli"
	"ductor/cli/turn"
)

// outcome returns the result of the turn. If the turn failed after ductor interrupted it, the failure is the reason of
// the interrupt.
func (t *liveTurn) outcome(end turn.End) cli.Result {
	var r cli.Result
	if t.reply != nil {
		if r = t.replied(); r.Err == nil || !t.Loop.Cut() {
			return r
		}
	}
	cut := t.Outcome(end)
	cut.Consumed = r.Consumed
	return cut
}

// replied returns the result of a turn from the agent's reply to the prompt.
func (t *liveTurn) replied() cli.Result {
	o := t.s.options()
	if t.reply.Error != nil {
		return cli.Result{Err: o.refusal(t.reply.Error)}
	}
	var p prompted
	if err := json.Unmarshal(t.reply.Result, &p); err != nil || p.StopReason == "" {
		f := cli.Failf(cli.BadOutput, o.Agent, "failure.end-unreadable")
		f.Detail = cli.Shorten(string(t.reply.Result), 1000)
		return cli.Result{Err: f}
	}
	r := t.s.counted(p)
	switch p.StopReason {
	case "end_turn":
		if text, ok := t.reporter.failed(r.Consumed.Usage); ok {
			r.Err = o.meaning(0, text, "")
		} else if t.Req.Task == cli.TaskCompact {
			t.Out.Pass(cli.CompactBoundary{})
		} else if hidden := o.quirks.HiddenFailure; hidden != nil && !t.reporter.ran && len(t.reporter.denials) == 0 &&
			t.Req.Task == cli.TaskPrompt {
			r.Err = hidden(o.Agent, t.Out.Answer(), r)
		}
	case "cancelled":
		if len(t.reporter.denials) > 0 { // some agents end the turn after a denial
			break
		}
		r.Err = cli.Failf(cli.UnknownFailure, o.Agent, "failure.cancelled-itself")
	case "max_tokens":
		r.Err = &cli.Failure{Kind: cli.AnswerCut, Agent: o.Agent}
	case "max_turn_requests":
		r.Err = cli.Failf(cli.LimitOfTurn, o.Agent, "failure.many-calls")
	case "refusal":
		r.Err = &cli.Failure{Kind: cli.ModelRefused, Agent: o.Agent}
	default:
		r.Err = cli.Failf(cli.UnknownFailure, o.Agent, "failure.stopped", cli.ShortLine(p.StopReason))
	}
	return r
}

// counted returns a result that contains the token usage of the turn. The usage is empty if the agent does not report
// it.
func (s *session) counted(p prompted) cli.Result {
	var r cli.Result
	quirks := s.options().quirks.Usage
	switch u := p.Usage; {
	case u != nil:
		r.Consumed.Usage = cli.Usage{
			Input: max(u.Input-u.CacheRead, 0), Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite,
			Reasoning: u.Thought,
		}
		if quirks.Total {
			s.mu.Lock()
			defer s.mu.Unlock()
			r.Consumed.Usage, s.past.totals = r.Consumed.Usage.Sub(s.past.totals), r.Consumed.Usage
		}
	case quirks.InMeta != nil:
		r.Model, r.Consumed = quirks.InMeta(p.Meta)
	}
	return r
}
