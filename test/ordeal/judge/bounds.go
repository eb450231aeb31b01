package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/scenario"
)

// earlyCalls finds calls that ductor made too early. After a response with retry_after, ductor must not make another
// call for the same chat for retry_after seconds. A restart ends this wait, because ductor does not store retry_after.
func earlyCalls(f *facts) (all []Violation) {
	type silence struct{ from, until time.Time }
	shut := map[telegram.ChatID]silence{}
	calls := slices.Clone(f.Calls)
	slices.SortStableFunc(calls, func(a, b telegram.Call) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, c := range calls {
		if c.Chat == 0 || !telegram.Writes(c) {
			continue
		}
		s, known := shut[c.Chat]
		if known && c.At.After(s.from) && c.At.Before(s.until) && !f.diedBetween(s.from, c.At) {
			all = append(all, Violation{Detail: fmt.Sprintf("%s in chat %d came %s before the time that Telegram named",
				c.Method, c.Chat, s.until.Sub(c.At))})
		}
		if c.RetryAfter > 0 && isReadable(c) {
			shut[c.Chat] = silence{c.Done, c.Done.Add(time.Duration(c.RetryAfter) * time.Second)}
		}
	}
	return all
}

// isReadable reports whether ductor could read the response of a call.
func isReadable(c telegram.Call) bool {
	return c.Fault == telegram.NoFault || c.Fault == telegram.TooMany
}

func (f *facts) diedBetween(from, to time.Time) bool {
	return slices.ContainsFunc(f.Stops, func(s Stop) bool { return !s.At.Before(from) && !s.At.After(to) })
}

// promptsOverBudget finds prompts that an agent began although earlier turns had used up the daily budget. Costs are
// counted from midnight.
func promptsOverBudget(f *facts) (all []Violation) {
	most, set := 0, false
	for _, o := range f.Scenario.Options.Settings {
		if o.Key == "budget.day" {
			amount, err := strconv.ParseFloat(string(o.Value), 64)
			most, set = int(amount*100+0.5), err == nil
		}
	}
	lifted := slices.ContainsFunc(f.Presses, func(p Press) bool { return isOne(p.Label, "bot.lift") })
	if !set || lifted || f.Began.UTC().YearDay() != f.Began.UTC().Add(f.elapsed()).YearDay() {
		return nil
	}
	for i, e := range f.Agents {
		if spent := f.spentBefore(i); e.What == Got && namesCosts(e) && !f.joins(e.Token) && spent >= most {
			all = append(all, Violation{Token: e.Token,
				Detail: fmt.Sprintf("began when %d of %d cents were spent", spent, most)})
		}
	}
	return all
}

// startTime is the maximum time from ductor's check of the budget until the agent gets the prompt. In between, ductor
// starts the agent.
const startTime = 5 * time.Second

// learnTime is how long ductor may need to learn the cost of a turn after the agent ended it.
const learnTime = time.Second

// lingerTime is how long an agent's process may run after the agent ended its turn, for example because a command works
// in the background. It matters only if each turn has its own process: ductor then learns the cost when the process
// ends.
const lingerTime = 2 * time.Second

// learns returns how long ductor may need to learn the cost of a turn of Claude. The other agents report no costs.
func (f *facts) learns() time.Duration {
	if f.isOneShot("claude") {
		return learnTime + lingerTime
	}
	return learnTime
}

// spentBefore returns the total cost of the turns that ended before event i, the start of a turn. It omits the costs
// that ductor may not have known when it started this turn:
//   - ductor may have learned too late that an earlier turn had ended, for example because ductor was down.
//   - ductor lost its record of an earlier turn (see undone).
func (f *facts) spentBefore(i int) (cents int) {
	now, ready := f.Agents[i], f.readyForTurn(i)
	for j, e := range f.Agents[:i] {
		if e.What != Done || !namesCosts(e) || f.undone(j, now.At) {
			continue
		}
		end, ended := f.endOfTurn(j)
		known := f.seen(end)
		if f.sent[e.Token].In == f.sent[now.Token].In ||
			ended && (known.Add(startTime).Before(now.At) || known.Add(f.learns()).Before(ready)) {
			cents += costOf(f.prompts[e.Token])
		}
	}
	return cents
}

// undone reports whether ductor lost the record of the start or of the end of a turn. Event j is the end of the turn.
// Only stops count after which ductor was running again before the time `now`.
func (f *facts) undone(j int, now time.Time) bool {
	done, began := f.Agents[j], f.Agents[j].At
	for _, e := range f.Agents[:j] {
		if e.What == Got && e.Token == done.Token {
			began = e.At
		}
	}
	return slices.ContainsFunc(f.Stops, func(s Stop) bool {
		return !s.Up.After(now) && (f.wasLost(s, began, 0) || f.wasLost(s, done.At, 0))
	})
}

// readyForTurn returns the earliest possible start of the turn of event i. This is the time at which the user sent the
// prompt, or the time at which the previous turn of the conversation ended, whichever is later.
func (f *facts) readyForTurn(i int) time.Time {
	s := f.sent[f.Agents[i].Token]
	ready := s.At
	for _, e := range f.Agents[:i] {
		if e.What == Done && f.sent[e.Token].In == s.In && e.Token != s.Token && e.At.After(ready) {
			ready = e.At
		}
	}
	return ready
}

// endOfTurn returns the time at which a turn ended. It returns false if the turn has not ended. Event i is the end of a
// prompt of the turn. If ductor added more prompts to the turn later, the turn ended with the last of these prompts.
func (f *facts) endOfTurn(i int) (end time.Time, ended bool) {
	in, end, ended := f.sent[f.Agents[i].Token].In, f.Agents[i].At, true
	for _, e := range f.Agents[i+1:] {
		switch {
		case f.sent[e.Token].In != in:
		case e.What == Got && !f.joins(e.Token):
			return end, ended
		case e.What == Got:
			ended = false
		case e.What == Done:
			end, ended = e.At, true
		}
	}
	return end, ended
}

// joins reports whether ductor may have added a prompt to a running turn. This is possible if a user has asked for it
// in the same conversation, with a button or with /queue steer.
func (f *facts) joins(token scenario.Token) bool {
	in := f.sent[token].In
	return slices.ContainsFunc(f.Presses, func(p Press) bool { return p.In == in && isOne(p.Label, scenario.Steer) }) ||
		slices.ContainsFunc(f.Sent, func(s Sent) bool { return s.In == in && s.Text == "/queue steer" })
}

// seen returns the time at which ductor could learn of an event. If ductor was down at the time of the event, this is
// the next start of ductor.
func (f *facts) seen(at time.Time) time.Time {
	for _, s := range f.Stops {
		if !at.Before(s.At) && at.Before(s.Up) {
			return s.Up
		}
	}
	return at
}

func namesCosts(e AgentEvent) bool { return strings.HasPrefix(e.Agent, "claude") }

func costOf(p scenario.Prompt) (cents int) {
	for _, act := range p.Acts {
		if c, ok := act.(scenario.Cost); ok {
			cents = c.Cents
		}
	}
	return cents
}
