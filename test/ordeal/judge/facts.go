package judge

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/lang"
	"ductor/test/ordeal/scenario"
)

// facts contains the evidence about a scenario, and indexes of the evidence for the rules.
type facts struct {
	Evidence
	prompts map[scenario.Token]scenario.Prompt
	sent    map[scenario.Token]Sent // the first message of each prompt
	tokens  []scenario.Token        // tokens of the prompts that users sent, oldest first
	effects map[scenario.Token][]AgentEvent
	events  map[scenario.Token][]AgentEvent
	jobs    map[scenario.Token]scenario.Schedule
	// words caches the results of wordsOf. documents contains the words of answers in each document of the bot, in the
	// format of wordsOf.
	words     map[messageKey]map[scenario.Token][]int
	documents []map[scenario.Token][]int
}

type messageKey struct {
	chat telegram.ChatID
	id   telegram.MessageID
}

// wordsOf finds the words of answers in a message. It returns the numbers of the words for each prompt. For example, it
// returns {p17: [3, 4]} for "p17w3 p17w4".
func (f *facts) wordsOf(m telegram.Message) map[scenario.Token][]int {
	key := messageKey{m.Chat, m.ID}
	found, known := f.words[key]
	if !known {
		found = words(m.Text)
		f.words[key] = found
	}
	return found
}

func gather(e Evidence) *facts {
	f := &facts{
		Evidence: e, prompts: e.Scenario.Prompts(), sent: map[scenario.Token]Sent{},
		effects: map[scenario.Token][]AgentEvent{},
		events:  map[scenario.Token][]AgentEvent{}, jobs: map[scenario.Token]scenario.Schedule{},
		words: map[messageKey]map[scenario.Token][]int{},
	}
	for _, text := range e.Documents {
		f.documents = append(f.documents, words(text))
	}
	for _, s := range e.Sent {
		if _, again := f.sent[s.Token]; s.Token != "" && !again {
			f.sent[s.Token] = s
			f.tokens = append(f.tokens, s.Token)
		}
	}
	for _, a := range e.Agents {
		f.events[a.Token] = append(f.events[a.Token], a)
		if a.What == Effect {
			f.effects[a.Token] = append(f.effects[a.Token], a)
		}
	}
	for _, step := range e.Scenario.Steps {
		if job, ok := step.(scenario.Schedule); ok {
			f.jobs[job.Token] = job
		}
	}
	return f
}

// listed reports whether a user may send prompts and decide requests.
func listed(p scenario.Person) bool { return p == scenario.Owner || p == scenario.Ann }

// private reports whether a place is a private chat.
func private(in scenario.Place) bool {
	switch scenario.Person(in) {
	case scenario.Owner, scenario.Ann, scenario.Bob, scenario.Mallory:
		return true
	}
	return false
}

// chat returns the chat that contains a place.
func (f *facts) chat(in scenario.Place) (Chat, bool) {
	name, _, _ := strings.Cut(string(in), "/")
	for _, c := range f.Chats {
		if string(c.Name) == name {
			return c, true
		}
	}
	return Chat{}, false
}

// place returns the place of a message: its topic or its chat.
func (c Chat) place(m telegram.Message) scenario.Place {
	if in, ok := c.Topics[m.Topic]; ok && m.Topic != 0 {
		return in
	}
	return c.Name
}

// hurt reports whether an event in the chat or topic may have removed messages, or may have prevented the bot from
// sending messages there.
func (f *facts) hurt(in scenario.Place) bool {
	if c, ok := f.chat(in); ok && c.Hurt {
		return true
	}
	whole, _, _ := strings.Cut(string(in), "/")
	for _, step := range f.Scenario.Steps {
		if h, ok := step.(scenario.Happen); ok && (h.In == in || string(h.In) == whole) {
			return true
		}
	}
	return false
}

// said returns the messages of the bot that a chat shows, oldest first.
func (c Chat) said() (all []telegram.Message) {
	for _, m := range c.History {
		if m.From.Bot && !m.Deleted && m.Service == "" {
			all = append(all, m)
		}
	}
	return all
}

// about reports whether a message of the bot belongs to a prompt. Such a message replies to the prompt, or contains
// words of the answer or names of effects.
func (f *facts) about(m telegram.Message, token scenario.Token) bool {
	if s := f.sent[token]; s.ID != 0 && m.ReplyTo == s.ID && m.Chat == s.Chat {
		return true
	}
	return mentions(m.Text, token)
}

// mentions reports whether a text contains the token of a prompt, for example p17. A word of the prompt's answer
// (p17w3) and the name of an effect (p17.1) contain the token, too.
func mentions(text string, token scenario.Token) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], string(token))
		if i < 0 {
			return false
		}
		at += i
		end := at + len(token)
		before, after := at == 0 || !isWord(text[at-1]), end == len(text) || text[end] < '0' || text[end] > '9'
		if before && after {
			return true
		}
		at = end
	}
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// replies returns the visible messages of the bot that reply to a prompt.
func (f *facts) replies(s Sent) (all []telegram.Message) {
	for _, c := range f.Chats {
		if c.ID != s.Chat {
			continue
		}
		for _, m := range c.said() {
			if m.ReplyTo == s.ID {
				all = append(all, m)
			}
		}
	}
	return all
}

// has reports whether a message has any of these buttons.
func has(m telegram.Message, buttons ...scenario.Button) bool {
	for _, row := range m.Keyboard {
		for _, b := range row {
			if isOne(b.Text, buttons...) {
				return true
			}
		}
	}
	return false
}

func isOne(label string, buttons ...scenario.Button) bool {
	return slices.ContainsFunc(buttons, func(b scenario.Button) bool { return b.Is(label) })
}

var placeholder = regexp.MustCompile(`%(\[\d+\])?[a-z]`)

// patterns caches the texts of package lang in all languages. Each text is split at its placeholders. Keys have the
// type lang.Key, values the type [][]string.
var patterns sync.Map

// says reports whether a text contains any of the texts of package lang with the given keys, in any language and with
// any values.
func says(text string, keys ...lang.Key) bool {
	return slices.ContainsFunc(keys, func(key lang.Key) bool {
		found, known := patterns.Load(key)
		if !known {
			var all [][]string
			for _, l := range lang.Languages() {
				all = append(all, placeholder.Split(l.Printer().Text(key), -1))
			}
			found, _ = patterns.LoadOrStore(key, all)
		}
		return slices.ContainsFunc(found.([][]string), func(parts []string) bool { return contains(text, parts) })
	})
}

func contains(text string, parts []string) bool {
	for _, p := range parts {
		p = strings.TrimSpace(p)
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return true
}

// again returns the buttons that run a prompt again.
func again() []scenario.Button {
	return []scenario.Button{
		scenario.RunAgain, scenario.StartOver, scenario.StartFresh, "bot.start-over-both", "bot.hand-off", "bot.run-at",
		"bot.compact",
		"bot.start-summary", "agent.run-without", "cron.run-now", "consult.again", "bot.log-in", "bot.lift", "cron.add",
	}
}

// runs returns how often a prompt may run. The prompt may run once, and once more for each of the following: a press of
// a button that runs it again, and a loss of the record of its start. The prompt of a job may also run as often as the
// job is due.
func (f *facts) runs(token scenario.Token) int {
	n := 1 + f.pressesOf(token, again()...)
	if job, ok := f.jobs[token]; ok && job.Every > 0 {
		n += int(f.elapsed()/job.Every) + 1
	}
	for _, s := range f.Stops {
		if f.lostBegin(token, s) {
			n++
		}
	}
	return n
}

// pressesOf returns how many of the given buttons were pressed on messages about a prompt. It counts each button of a
// message at most once, and only presses by users who may decide.
func (f *facts) pressesOf(token scenario.Token, buttons ...scenario.Button) int {
	type pressed struct {
		message messageKey
		data    string
	}
	seen := map[pressed]bool{}
	for _, p := range f.allPresses(token, buttons...) {
		seen[pressed{messageKey{p.Chat, p.Message}, p.Data}] = true
	}
	return len(seen)
}

// allPresses returns all presses of these buttons on messages about a prompt, by users who may press the buttons.
func (f *facts) allPresses(token scenario.Token, buttons ...scenario.Button) (all []Press) {
	for _, p := range f.Presses {
		if listed(p.By) && isOne(p.Label, buttons...) && f.pressed(p, token) {
			all = append(all, p)
		}
	}
	return all
}

// pressed reports whether a press was on a message about a prompt. A message that names no prompt counts for all
// prompts of its chat.
func (f *facts) pressed(p Press, token scenario.Token) bool {
	s := f.sent[token]
	inChat := s.Chat == p.Chat || s.By == Webhook && s.In == p.In // a webhook's call is not a message in a chat
	for _, c := range f.Chats {
		if c.ID != p.Chat {
			continue
		}
		for _, m := range c.History {
			if m.ID == p.Message {
				return f.about(m, token) || mentions(p.Text, token) || !f.namesOne(m, p) && inChat
			}
		}
	}
	return mentions(p.Text, token)
}

func (f *facts) namesOne(m telegram.Message, p Press) bool {
	return slices.ContainsFunc(f.tokens, func(t scenario.Token) bool { return f.about(m, t) || mentions(p.Text, t) })
}

// elapsed returns an upper bound of the time that the scenario took by the wall clock. If a step moves the clock
// forward or back, elapsed adds the size of the move.
func (f *facts) elapsed() time.Duration {
	d := f.Ended.Sub(f.Began)
	for _, step := range f.Scenario.Steps {
		switch step := step.(type) {
		case scenario.Clock:
			d += step.By.Abs()
		case scenario.Suspend:
			d += step.For
		}
	}
	return d
}

// aborts returns the messages that abort a conversation. It ignores messages of users who may not abort.
func (f *facts) aborts(in scenario.Place) (all []Sent) {
	for _, s := range f.Sent {
		word := strings.ToLower(strings.TrimSpace(s.Text))
		if s.In == in && listed(s.By) && (word == "/abort" || word == "/stop" || private(in) &&
			(word == "stop" || word == "abort")) {
			all = append(all, s)
		}
	}
	return all
}

// stopped reports whether a user stopped, cancelled or replaced a prompt. The answer may then be incomplete.
func (f *facts) stopped(token scenario.Token) bool {
	s := f.sent[token]
	for _, a := range f.aborts(s.In) {
		if !a.At.Before(s.At) {
			return true
		}
	}
	if f.pressesOf(token, scenario.StopTurn, scenario.CancelQueued, scenario.Interrupt, scenario.StartOver,
		"bot.start-over-both", "bot.lift") > 0 {
		return true
	}
	interrupting := func(p Press) bool {
		return p.In == s.In && listed(p.By) && isOne(p.Label, scenario.Interrupt, scenario.StopTurn)
	}
	if slices.ContainsFunc(f.Presses, interrupting) {
		return true
	}
	return slices.ContainsFunc(f.Sent, func(e Sent) bool {
		return e.Old == token || e.In == s.In &&
			(strings.HasPrefix(e.Text, "/queue interrupt") || strings.HasPrefix(e.Text, "/new"))
	})
}
