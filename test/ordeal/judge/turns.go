package judge

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/lang"
	"ductor/test/ordeal/scenario"
)

// words returns the numbers of an answer's words in a text, in order, by token. It ignores directives, which quote a
// prompt, and a word directly before an ellipsis, which may be truncated.
func words(text string) map[scenario.Token][]int {
	all := map[scenario.Token][]int{}
	text = directivePattern.ReplaceAllString(text, " ")
	for _, m := range wordPattern.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(m[2]); err == nil && m[3] == "" {
			all[scenario.Token(m[1])] = append(all[scenario.Token(m[1])], n)
		}
	}
	return all
}

var (
	wordPattern      = regexp.MustCompile(`\b(p\d+)w(\d+)\b(…?)`)
	directivePattern = regexp.MustCompile(`\[\[[^\]\n]*(\]\]|\n|$)`)
)

// shown compares an agent's words with the words that its chat shows.
func shown(f *facts) (all []Violation) {
	for _, token := range f.tokens {
		s := f.sent[token]
		c, ok := f.chat(s.In)
		if !ok || s.ID == 0 {
			continue
		}
		numbers := f.numbers(c, token)
		if v, bad := f.repeated(token, numbers); bad {
			all = append(all, v)
		}
		if f.hurt(s.In) || f.stopped(token) || f.unknown(c, token) || f.lostEnd(token) {
			continue
		}
		for _, n := range f.owed(token) {
			if !slices.Contains(numbers, n) && !f.inDocument(token, n) {
				all = append(all, Violation{Token: token,
					Detail: fmt.Sprintf("%s was said and is not shown", token.Word(n))})
				break
			}
		}
	}
	return all
}

// numbers returns the numbers of an answer's words in a chat, from its first message to its last.
func (f *facts) numbers(c Chat, token scenario.Token) (numbers []int) {
	for _, m := range c.said() {
		if m.Media == nil {
			numbers = append(numbers, whole(f.wordsOf(m)[token])...)
		}
	}
	return numbers
}

// whole removes the last word if it is only the beginning of the expected word: the agent died while it wrote that
// word.
func whole(numbers []int) []int {
	last := len(numbers) - 1
	if last > 0 && numbers[last] <= numbers[last-1] &&
		strings.HasPrefix(strconv.Itoa(numbers[last-1]+1), strconv.Itoa(numbers[last])) {
		return numbers[:last]
	}
	return numbers
}

// sentAgain returns how often messages of an answer may be repeated because a failure of the power or of a flush lost
// ductor's record of them.
func (f *facts) sentAgain(token scenario.Token) (n int) {
	c, _ := f.chat(f.sent[token].In)
	for _, e := range f.Stops {
		lost := func(m telegram.Message) bool {
			return f.shows(m, token) && !m.Date.After(e.At) && e.At.Sub(m.Date) < lazyWindow
		}
		if (e.How == scenario.Power || f.failedFlush()) && slices.ContainsFunc(c.said(), lost) {
			n++
		}
	}
	return n
}

// repeated finds words that are repeated or in the wrong order. Each further run, and each press of Show again, may
// show all words once more.
func (f *facts) repeated(token scenario.Token, numbers []int) (Violation, bool) {
	copies := len(f.allPresses(token, scenario.ShowAgain)) + max(f.timesGot(token), f.runs(token)) + f.sentAgain(token)
	begun, last := 1, -1
	for _, n := range numbers {
		if n <= last {
			begun++
		}
		if begun > copies {
			return Violation{Token: token, Detail: fmt.Sprintf("%s is shown behind %s", token.Word(n),
				token.Word(last))}, true
		}
		last = n
	}
	return Violation{}, false
}

// timesGot returns how often an agent received a prompt. The text of one attempt stays visible when another follows.
func (f *facts) timesGot(token scenario.Token) (n int) {
	for _, e := range f.events[token] {
		if e.What == Got {
			n++
		}
	}
	return n
}

// saidWords returns the number of words that an agent certainly wrote: all words of a successful turn, otherwise the
// words before its last effect.
func (f *facts) saidWords(token scenario.Token) int {
	p, last := f.prompts[token], -1
	for _, e := range f.events[token] {
		switch e.What {
		case Done:
			return len(p.Words())
		case Effect:
			if _, number, ok := strings.Cut(e.Name, "."); ok {
				if i, err := strconv.Atoi(number); err == nil {
					last = max(last, i)
				}
			}
		}
	}
	n := 0
	for i, act := range p.Acts {
		if text, ok := act.(scenario.Text); ok && i < last {
			n += text.Words
		}
	}
	return n
}

// owed returns the words of an answer that its chat must show: all words that the agent certainly wrote and that are
// part of the answer. codex exec prints whole messages, so its text before a tool is not part of the answer. Copilot
// repeats its text after the model failed. An agent that ignores SIGTERM may go on after ductor ended its turn because
// the model failed.
func (f *facts) owed(token scenario.Token) (numbers []int) {
	announces := f.ranIn(token, "codex") && (f.oneShotCodex() || f.secondAttempt(token))
	said, next, behindTool, stubborn := f.saidWords(token), 0, 0, false
	for _, act := range f.prompts[token].Acts {
		switch act := act.(type) {
		case scenario.Text:
			for range act.Words {
				if next < said {
					numbers = append(numbers, next)
				}
				next++
			}
		case scenario.Run, scenario.Ask, scenario.Write:
			if announces {
				numbers = nil
			}
			behindTool = len(numbers)
		case scenario.Break:
			stubborn = stubborn || act.How == scenario.Stubborn
		case scenario.Fail:
			if f.ranIn(token, "copilot") {
				numbers = numbers[:behindTool]
			}
			if stubborn {
				return numbers
			}
		}
	}
	return numbers
}

func (f *facts) ranIn(token scenario.Token, agent string) bool {
	return slices.ContainsFunc(f.events[token], func(e AgentEvent) bool { return e.Agent == agent })
}

func (f *facts) oneShotCodex() bool {
	return slices.ContainsFunc(f.Scenario.Options.Settings, func(o scenario.Setting) bool {
		return o.Key == "agents.codex.mode" && strings.Contains(string(o.Value), "one-shot")
	})
}

// secondAttempt reports whether a live agent broke before its first output, so that a one-shot agent received the
// prompt again.
func (f *facts) secondAttempt(token scenario.Token) bool {
	c, _ := f.chat(f.sent[token].In)
	return slices.ContainsFunc(c.said(), func(m telegram.Message) bool {
		return f.about(m, token) && says(m.Text, "card.second-attempt")
	})
}

// unknown reports whether the chat says that a part of an answer may be missing, or offers to show it again.
func (f *facts) unknown(c Chat, token scenario.Token) bool {
	return slices.ContainsFunc(c.said(), func(m telegram.Message) bool {
		marked := has(m, scenario.ShowAgain) || says(m.Text, "card.part-unknown", "card.part-refused", "turn.not-shown")
		return marked && (f.about(m, token) || !slices.ContainsFunc(f.tokens, func(t scenario.Token) bool {
			return f.about(m, t)
		}))
	})
}

// lostEnd reports whether the power or a flush failed while a prompt ran, or so soon afterwards that its end was not
// flushed.
func (f *facts) lostEnd(token scenario.Token) bool {
	return slices.ContainsFunc(f.Stops, func(s Stop) bool {
		window := f.lossWindow(s)
		return window > 0 && !s.At.Before(f.sent[token].At) && !f.doneBefore(token, s.At.Add(-window))
	})
}

func (f *facts) doneBefore(token scenario.Token, at time.Time) bool {
	return slices.ContainsFunc(f.events[token], func(e AgentEvent) bool { return e.What == Done && e.At.Before(at) })
}

// inDocument reports whether a file from the bot contains a word.
func (f *facts) inDocument(token scenario.Token, n int) bool {
	return slices.ContainsFunc(f.documents, func(words map[scenario.Token][]int) bool {
		return slices.Contains(words[token], n)
	})
}

// approved compares the effects that need an approval with the presses that allowed them.
func approved(f *facts) (all []Violation) {
	for _, token := range f.tokens {
		for _, e := range f.effects[token] {
			_, number, _ := strings.Cut(e.Name, ".")
			i, err := strconv.Atoi(number)
			if p := f.prompts[token]; err != nil || i >= len(p.Acts) || p.Acts[i] != (scenario.Ask{}) {
				continue
			}
			if !f.allowedBefore(token, e) {
				all = append(all, Violation{Token: token,
					Detail: e.Name + " happened, and no user who may had allowed it"})
			}
		}
	}
	return append(all, decidedOnce(f)...)
}

// allowedBefore finds the press that allowed an effect. The press must be on a message that showed the effect, by a
// user who may decide. A delivery to the webhook has a place, but no chat. An earlier press that allowed more than one
// request, or a mode that allows everything, also counts.
func (f *facts) allowedBefore(token scenario.Token, e AgentEvent) bool {
	s := f.sent[token]
	for _, p := range f.Presses {
		if p.At.After(e.At) || !listed(p.By) || private(s.In) && string(p.By) != string(s.In) {
			continue
		}
		here := p.Chat == s.Chat || p.In == s.In
		if here && isOne(p.Label, scenario.AllowOnce) && strings.Contains(p.Text, e.Name) {
			return true
		}
		if isOne(p.Label, scenario.AllowSession, scenario.AllowRule, "approval.accept-edits", "approval.begin-and-edit",
			"approval.allow-pattern") {
			return true
		}
		if strings.Contains(strings.ToLower(p.Label), "bypass") || strings.Contains(strings.ToLower(p.Text), "bypass") {
			return true
		}
	}
	return slices.ContainsFunc(f.Scenario.Options.Settings, func(o scenario.Setting) bool {
		return o.Key == "permissions.mode" && strings.Contains(string(o.Value), "bypass")
	})
}

// decidedOnce finds requests that were decided twice.
func decidedOnce(f *facts) (all []Violation) {
	for _, token := range f.tokens {
		decided := map[string]int{}
		for _, e := range f.events[token] {
			if e.What == Allowed || e.What == Denied {
				decided[e.Name]++
			}
			if decided[e.Name] == f.runs(token)+1 {
				all = append(all, Violation{Token: token, Detail: e.Name + " was decided more than once"})
			}
		}
	}
	return all
}

// aborted finds effects after an abort: effects of prompts from before the abort, after the chat reported their end.
func aborted(f *facts) (all []Violation) {
	for _, c := range f.Chats {
		for _, stop := range f.aborts(c.Name) {
			all = append(all, f.goesOn(c, stop)...)
		}
		for _, in := range c.Topics {
			for _, stop := range f.aborts(in) {
				all = append(all, f.goesOn(c, stop)...)
			}
		}
	}
	return all
}

func (f *facts) goesOn(c Chat, stop Sent) (all []Violation) {
	at, ok := f.saidStopped(c, stop)
	if !ok || f.reordered() {
		return nil
	}
	for _, token := range f.tokens {
		s := f.sent[token]
		_, job := f.jobs[token]
		if s.In != stop.In || s.ID >= stop.ID || s.ID == 0 || job || f.pressesOf(token, again()...) > 0 ||
			f.edited(token) {
			continue
		}
		for _, e := range f.events[token] {
			if e.At.After(at) && (e.What == Effect || e.What == Got) {
				all = append(all, Violation{Token: token,
					Detail: fmt.Sprintf("%s %s came %s behind the abort", e.What, e.Name, e.At.Sub(at))})
				break
			}
		}
	}
	return all
}

// reordered reports whether Telegram reordered updates, so that an abort may have arrived before earlier messages.
func (f *facts) reordered() bool {
	return slices.ContainsFunc(f.Scenario.Steps, func(s scenario.Step) bool {
		u, ok := s.(scenario.Updates)
		return ok && u.How != scenario.Duplicate
	})
}

func (f *facts) edited(token scenario.Token) bool {
	return f.sent[token].Old != "" || slices.ContainsFunc(f.Sent, func(s Sent) bool { return s.Old == token })
}

// abortWithin is how long processes of a turn may live after the chat reports that the turn is being stopped.
const abortWithin = 15 * time.Second

// saidStopped returns the time at which an abort must be complete: when the chat reports this, or abortWithin after it
// shows "Stopping…".
func (f *facts) saidStopped(c Chat, stop Sent) (time.Time, bool) {
	var stopping time.Time
	for _, m := range c.History {
		if !m.From.Bot || m.ReplyTo != stop.ID && (m.ID < stop.ID || c.place(m) != stop.In) {
			continue
		}
		for _, v := range m.Versions {
			if slices.ContainsFunc([]lang.Key{"bot.stopped", "bot.nothing-runs", "bot.nothing-ran"},
				func(k lang.Key) bool { return says(v.Text, k) }) {
				if !stopping.IsZero() && stopping.Before(v.At) {
					return stopping, true
				}
				return v.At, true
			}
			if says(v.Text, "bot.stopping") {
				stopping = v.At.Add(abortWithin)
			}
		}
	}
	return stopping, !stopping.IsZero()
}
