package judge

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/scenario"
)

// words finds the words of answers in a text. The word p17w3 is number 3 in the answer to the prompt p17. For each
// prompt, words returns the numbers in the order of the text. It ignores these words:
//   - words in double brackets, which belong to a quoted prompt
//   - words before an ellipsis, which may be incomplete
//   - prompts and answers on the screen of a session (latestPattern)
func words(text string) map[scenario.Token][]int {
	all := map[scenario.Token][]int{}
	text = directivePattern.ReplaceAllString(latestPattern.ReplaceAllString(text, " "), " ")
	for _, m := range wordPattern.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(m[2]); err == nil && m[3] == "" {
			all[scenario.Token(m[1])] = append(all[scenario.Token(m[1])], n)
		}
	}
	return all
}

var (
	wordPattern = regexp.MustCompile(`\b(p\d+)w(\d+)\b(…?)`)
	// latestPattern matches a prompt and its answer on the screen of a session.
	latestPattern    = regexp.MustCompile(`(?m)^> p\d+ \[\[.*\n.*`)
	directivePattern = regexp.MustCompile(`\[\[[^\]\n]*(\]\]|\n|$)`)
)

// wronglyShownWords finds words that an agent has written and that the chat does not show, or shows too often.
func wronglyShownWords(f *facts) (all []Violation) {
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

// numbers finds the words of an answer in the messages of a chat. It returns the number of each word, such as 3 for
// p17w3, in the order of the messages.
func (f *facts) numbers(c Chat, token scenario.Token) (numbers []int) {
	for _, m := range c.said() {
		if m.Media == nil {
			numbers = whole(append(numbers, f.wordsOf(m)[token]...))
		}
	}
	return numbers
}

// whole removes the last number if the agent may have ended before it had written all digits of the number. For
// example, a 1 after a 9 may be the beginning of 10. The 9 and the 1 may be in different messages.
func whole(numbers []int) []int {
	last := len(numbers) - 1
	if last > 0 && numbers[last] <= numbers[last-1] &&
		strings.HasPrefix(strconv.Itoa(numbers[last-1]+1), strconv.Itoa(numbers[last])) {
		return numbers[:last]
	}
	return numbers
}

// sentAgain returns how many stops of ductor may have made ductor send a message of an answer again. After a stop,
// ductor does so if it has no record of the message: the stop lost the record, or ductor could not write the record
// because the disk was full.
func (f *facts) sentAgain(token scenario.Token) (n int) {
	c, _ := f.chat(f.sent[token].In)
	for _, s := range f.Stops {
		lost := func(m telegram.Message) bool {
			return f.shows(m, token) && (f.diskFailedIn(m.Date, s.At, scenario.DiskFull) ||
				f.wasLost(s, m.Date, f.Scenario.Latest()) && s.At.Sub(m.Date) < lazyWindow)
		}
		if slices.ContainsFunc(c.said(), lost) {
			n++
		}
	}
	return n
}

// shownAgain returns how many presses of the button "Show again" may have repeated an answer. A press has no effect if
// ductor is sure that all messages since the previous repetition have arrived (see mayMiss).
func (f *facts) shownAgain(token scenario.Token) (n int) {
	var last time.Time
	for _, p := range f.allPresses(token, scenario.ShowAgain) {
		if f.mayMiss(p, last) {
			n, last = n+1, p.At
		}
	}
	return n
}

// mayMiss reports whether ductor may have been unsure that all messages between the time `since` and the press p have
// arrived in the chat. ductor is unsure if, in this period, ductor died, a connection to Telegram broke, or a call to
// Telegram failed.
func (f *facts) mayMiss(p Press, since time.Time) bool {
	cut := func(at time.Time) bool { return !at.Before(since) && !at.After(p.At) }
	if f.Scenario.Latest() >= 10*time.Second || f.diedBetween(since, p.At) || slices.ContainsFunc(f.Faults.Cuts, cut) {
		return true
	}
	return slices.ContainsFunc(f.Calls, func(c telegram.Call) bool {
		return (c.Chat == p.Chat || f.hurt(p.In)) && telegram.Writes(c) && isUnsure(c) && !c.Done.Before(since) &&
			!c.At.After(p.At)
	})
}

// isUnsure reports whether a call failed in such a way that ductor may not know whether the call took effect. After a
// response with retry_after, ductor knows that the call had no effect.
func isUnsure(c telegram.Call) bool {
	return c.RetryAfter == 0 && (c.Fault != telegram.NoFault || !c.OK)
}

// repeated finds a word that is in the wrong order or appears too often. The chat may contain one copy of the answer
// for each run of the prompt (timesGot), each press of the button "Show again" (shownAgain), and each stop after which
// ductor sends messages again (sentAgain).
func (f *facts) repeated(token scenario.Token, numbers []int) (Violation, bool) {
	copies := f.shownAgain(token) + max(f.timesGot(token), f.runs(token)) + f.sentAgain(token)
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

// timesGot returns how often agents got a prompt.
func (f *facts) timesGot(token scenario.Token) (n int) {
	for _, e := range f.events[token] {
		if e.What == Got {
			n++
		}
	}
	return n
}

// saidWords returns how many words the agent has certainly written. If the turn succeeded, these are all words of the
// answer. Otherwise, these are the words before the last command or file write that the agent's log contains.
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

// owed returns the numbers of the words that the chat must show. These are the words that the agent has certainly
// written, except:
//   - words that codex exec wrote before a tool call, because ductor shows them as reasoning
//   - words that Copilot wrote between the last tool call and a failure of the model, because ductor retracts them
//   - words after a failure of the model, if the agent ignores SIGTERM: ductor has already ended the turn, and the
//     agent may continue to write
func (f *facts) owed(token scenario.Token) (numbers []int) {
	announces := f.ranIn(token, "codex") && (f.isOneShot("codex") || f.secondAttempt(token))
	said, next, behindTool, stubborn := f.saidWords(token), 0, 0, f.ranStubborn(token)
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

// ranStubborn reports whether a prompt before this one made its agent ignore SIGTERM. The same process may then run
// this prompt.
func (f *facts) ranStubborn(token scenario.Token) bool {
	before := f.tokens[:max(0, slices.Index(f.tokens, token))]
	return slices.ContainsFunc(before, func(t scenario.Token) bool {
		return slices.ContainsFunc(f.prompts[t].Acts, func(act scenario.Act) bool {
			b, ok := act.(scenario.Break)
			return ok && b.How == scenario.Stubborn
		})
	})
}

func (f *facts) ranIn(token scenario.Token, agent string) bool {
	return slices.ContainsFunc(f.events[token], func(e AgentEvent) bool { return e.Agent == agent })
}

// isOneShot reports whether each turn of an agent has its own process.
func (f *facts) isOneShot(agent string) bool {
	return slices.ContainsFunc(f.Scenario.Options.Settings, func(o scenario.Setting) bool {
		return o.Key == "agents."+agent+".mode" && strings.Contains(string(o.Value), "one-shot")
	})
}

// secondAttempt reports whether an agent failed before its first output, so that a new process got the prompt again.
func (f *facts) secondAttempt(token scenario.Token) bool {
	c, _ := f.chat(f.sent[token].In)
	return slices.ContainsFunc(c.said(), func(m telegram.Message) bool {
		return f.about(m, token) && says(m.Text, "card.second-attempt")
	})
}

// unknown reports whether the chat warns that a part of an answer may be missing, or has a button to show the answer
// again.
func (f *facts) unknown(c Chat, token scenario.Token) bool {
	return slices.ContainsFunc(c.said(), func(m telegram.Message) bool {
		marked := has(m, scenario.ShowAgain) || says(m.Text, "card.part-unknown", "card.part-refused", "turn.not-shown")
		return marked && (f.about(m, token) || !slices.ContainsFunc(f.tokens, func(t scenario.Token) bool {
			return f.about(m, t)
		}))
	})
}

// lostEnd reports whether the record of the end of a prompt may be lost. This is possible if the power or the disk
// failed while the prompt ran or soon after.
func (f *facts) lostEnd(token scenario.Token) bool {
	return slices.ContainsFunc(f.Stops, func(s Stop) bool {
		since, lost := f.lostSince(s)
		return lost && !s.At.Before(f.sent[token].At) && !f.doneBefore(token, since)
	})
}

func (f *facts) doneBefore(token scenario.Token, at time.Time) bool {
	return slices.ContainsFunc(f.events[token], func(e AgentEvent) bool { return e.What == Done && e.At.Before(at) })
}

// inDocument reports whether a document of the bot contains word n of an answer.
func (f *facts) inDocument(token scenario.Token, n int) bool {
	return slices.ContainsFunc(f.documents, func(words map[scenario.Token][]int) bool {
		return slices.Contains(words[token], n)
	})
}

// reordered reports whether Telegram may have delivered updates in a different order from the order in which users
// caused them. ductor may then have received an abort before messages that were sent earlier.
func (f *facts) reordered() bool {
	return slices.ContainsFunc(f.Scenario.Steps, func(s scenario.Step) bool {
		u, ok := s.(scenario.Updates)
		return ok && u.How != scenario.Duplicate
	})
}

func (f *facts) edited(token scenario.Token) bool {
	return f.sent[token].Old != "" || slices.ContainsFunc(f.Sent, func(s Sent) bool { return s.Old == token })
}
