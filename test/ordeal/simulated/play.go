package simulated

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/scenario"
	"ductor/test/ordeal/spoil"
)

// Without returns the kinds of steps that this package does not support, for Profile.Without.
func Without() []string {
	return []string{
		"clock", "suspend", // they set the clock, which testing/synctest does not support
		"terminal", // the hook needs a socket, which testing/synctest does not support
	}
}

// mostRest limits how long Settle may wait. It is longer than any ban.
const mostRest = 12 * time.Hour

// Play creates a World in an empty directory and runs a scenario there. It returns the evidence, the lines of
// World.log, and the hash of these lines. Call Play in a synctest bubble.
func Play(t testing.TB, dir string, s scenario.Scenario) (judge.Evidence, []string, string) {
	w := New(t, dir, s)
	p := &player{World: w, evidence: judge.Evidence{Scenario: s, Began: time.Now(), Secret: secret},
		sent: map[scenario.Token]telegram.Message{}, spoiled: &spoil.Telegram{Server: w.Telegram}}
	if err := w.Start(); err != nil {
		p.trouble("start", err)
		w.machine.close()
		w.disk.medium.Close()
		p.trouble("close Telegram", w.Telegram.Close())
		return p.evidence, w.Log(), w.log.hash()
	}
	for i, step := range s.Steps {
		p.number = i
		p.releaseUpdates(i)
		w.log.note("step", "%d %T %+v", i, step, step)
		p.perform(step)
	}
	p.heal()
	p.trouble("rest", w.Settle(mostRest, true))
	p.collect()
	p.trouble("stop", w.Stop())
	p.answered.Wait()
	p.lookBehind()
	return p.evidence, w.Log(), w.log.hash()
}

type player struct {
	*World
	number   int // number of the current step
	evidence judge.Evidence
	sent     map[scenario.Token]telegram.Message // message that contains each prompt
	spoiled  *spoil.Telegram
	release  map[int]func(int) // functions that deliver delayed updates; the key is the number of the step
	answered sync.WaitGroup    // goroutines that wait for the answer to a button or a webhook
	notes    []func()          // functions that add answers to the evidence; World.mu guards them
}

func (p *player) trouble(what string, err error) {
	if err != nil {
		p.evidence.Troubles = append(p.evidence.Troubles, what+": "+err.Error())
	}
}

func (p *player) perform(step scenario.Step) {
	switch step := step.(type) {
	case scenario.Say:
		p.say(step)
	case scenario.Send:
		p.send(step)
	case scenario.Edit:
		p.edit(step)
	case scenario.Reply:
		p.reply(step)
	case scenario.Press:
		p.press(step)
	case scenario.PressAny:
		p.pressAny(step)
	case scenario.Type:
		p.post(step.By, step.In, "", "", string(step.Text))
	case scenario.Schedule:
		p.schedule(step)
	case scenario.Deliver:
		p.deliver(step.Prompt)
	case scenario.Redeliver:
		p.deliver(p.evidence.Scenario.Prompts()[step.Token])
	case scenario.Wait:
		time.Sleep(step.For)
	case scenario.Settle:
		p.trouble("settle", p.Settle(mostRest, false))
	case scenario.Heal:
		p.heal()
	case scenario.Stop:
		step.Down = cmp.Or(step.Down, time.Second)
		p.End(step)
	case scenario.Telegram:
		p.spoil(step)
	case scenario.Updates:
		p.spoilUpdates(step)
	case scenario.Disk:
		p.disk.inject(step)
	case scenario.Happen:
		p.happen(step)
	case scenario.Kill:
		p.kill(step)
	default:
		p.trouble("perform", fmt.Errorf("%T cannot be performed", step))
	}
}

func effect(name string) string { return "echo " + name + " >> effects.log" }

// post sends a text as the user `by`, who need not be allowed to use the bot.
func (p *player) post(by scenario.Person, in scenario.Place, token, old scenario.Token, text string,
	opts ...telegram.SendOption) telegram.Message {
	c, topic, at := p.town.find(in, by)
	if c == nil {
		p.trouble("post", fmt.Errorf("there is no place %s", in))
		return telegram.Message{}
	}
	if topic != 0 {
		opts = append(opts, telegram.InTopic(topic))
	}
	m := p.town.people[by].Send(c.Chat, text, opts...)
	p.note(by, at, token, old, m)
	return m
}

func (p *player) note(by scenario.Person, at scenario.Place, token, old scenario.Token, m telegram.Message) {
	if token != "" {
		p.sent[token] = m
	}
	p.evidence.Sent = append(p.evidence.Sent, judge.Sent{
		Step: p.number, By: by, In: at, Token: token, Old: old, Text: m.Text, Chat: m.Chat, ID: m.ID, At: time.Now(),
	})
}

func (p *player) say(s scenario.Say) {
	var opts []telegram.SendOption
	if s.ReplyTo != "" {
		if m, ok := p.about(s.ReplyTo, nil); ok {
			opts = append(opts, telegram.ReplyTo(m.ID))
		} else if m, ok := p.sent[s.ReplyTo]; ok {
			opts = append(opts, telegram.ReplyTo(m.ID))
		}
	}
	p.post(s.By, s.In, s.Token, "", s.Script(effect), opts...)
}

func (p *player) send(s scenario.Send) {
	c, topic, at := p.town.find(s.In, s.By)
	opts := []telegram.SendOption{telegram.WithCaption(s.Script(effect))}
	if topic != 0 {
		opts = append(opts, telegram.InTopic(topic))
	}
	var files []telegram.File
	for i := range max(1, s.Count) {
		f := telegram.File{Name: fmt.Sprintf("%s-%d.txt", s.Token, i), MIME: "text/plain",
			Data: fmt.Appendf(nil, "file %d of %s\n", i, s.Token)}
		if s.Media == scenario.Photo {
			f = telegram.File{MIME: "image/jpeg", Data: fmt.Appendf(nil, "picture %d of %s\n", i, s.Token)}
		}
		files = append(files, f)
	}
	by := p.town.people[s.By]
	var m telegram.Message
	switch {
	case len(files) > 1:
		m = by.SendAlbum(c.Chat, files, opts...)[0]
	case s.Media == scenario.Photo:
		m = by.SendPhoto(c.Chat, files[0].Data, opts...)
	default:
		m = by.SendDocument(c.Chat, files[0], opts...)
	}
	p.note(s.By, at, s.Token, "", m)
}

func (p *player) edit(s scenario.Edit) {
	old, ok := p.sent[s.Old]
	if !ok {
		return
	}
	m := p.town.people[s.By].Edit(old, s.Script(effect))
	i := slices.IndexFunc(p.evidence.Sent, func(e judge.Sent) bool { return e.Token == s.Old })
	p.note(s.By, p.evidence.Sent[i].In, s.Token, s.Old, m)
}

func (p *player) reply(s scenario.Reply) {
	to, ok := p.about(s.To, nil)
	if !ok {
		if to, ok = p.sent[s.To]; !ok {
			return
		}
	}
	for _, c := range p.town.chats {
		if c.ID() == to.Chat {
			p.post(s.By, p.placeOf(c, to), "", "", string(s.Text), telegram.ReplyTo(to.ID))
		}
	}
}

func (p *player) placeOf(c *square, m telegram.Message) scenario.Place {
	for place, id := range c.topics {
		if id == m.Topic {
			return place
		}
	}
	return c.name
}

func (p *player) schedule(s scenario.Schedule) {
	when := "every " + inMinutes(s.Every)
	if s.Every == 0 {
		when = "in " + inMinutes(s.After)
	}
	p.post(s.By, s.In, s.Token, "", "/cron "+when+" "+s.Script(effect))
}

// inMinutes formats a duration for a schedule, in minutes.
func inMinutes(d time.Duration) string {
	if d >= time.Hour && d%time.Hour == 0 {
		return fmt.Sprintf("%d hours", d/time.Hour)
	}
	return fmt.Sprintf("%d minutes", d/time.Minute)
}

// kill kills agents. If it also kills the runner, ductor does not learn how the agents ended.
func (p *player) kill(s scenario.Kill) {
	for _, r := range p.machine.list() {
		r.mu.Lock()
		meant := s.What == scenario.Agents || r.prompt == s.Of && s.Of != ""
		if s.What == scenario.Runner && r.by == "" {
			r.by = cli.EndedUnseen
		}
		r.mu.Unlock()
		if meant {
			r.killBy(cli.EndedByItself)
		}
	}
}

// about returns the bot's newest message that is about a prompt and satisfies the function wanted. It returns false if
// there is no such message.
func (p *player) about(token scenario.Token, wanted func(telegram.Message) bool) (telegram.Message, bool) {
	prompt := p.sent[token]
	for _, c := range p.town.chats {
		for _, m := range slices.Backward(c.View().FromBot()) {
			if !(m.Chat == prompt.Chat && m.ReplyTo == prompt.ID && prompt.ID != 0) && !mentions(m.Text, token) {
				continue
			}
			if wanted == nil || wanted(m) {
				return m, true
			}
		}
	}
	return telegram.Message{}, false
}

// mentions reports whether a text contains a token, also within a word such as p17w3 or the name of an effect such as
// p17.3. The token p1 is not in p17.
func mentions(text string, token scenario.Token) bool {
	for rest := text; ; {
		i := strings.Index(rest, string(token))
		if i < 0 {
			return false
		}
		after := rest[i+len(token):]
		if after == "" || after[0] < '0' || after[0] > '9' {
			return true
		}
		rest = after
	}
}

// tap presses a button. When the bot's answer arrives, tap records it.
func (p *player) tap(by scenario.Person, on telegram.Message, b telegram.Button) {
	if b.Data == "" {
		return
	}
	c := p.squareOf(on.Chat)
	i := len(p.evidence.Presses)
	p.evidence.Presses = append(p.evidence.Presses, judge.Press{
		Step: p.number, By: by, In: p.placeOf(c, on), Chat: on.Chat, Message: on.ID, Label: b.Text, Data: b.Data,
		Text: on.Text, At: time.Now(),
	})
	tap := p.town.people[by].TapData(on, b.Data)
	p.answered.Go(func() {
		answer, err := tap.Answer(context.Background())
		p.mu.Lock()
		defer p.mu.Unlock()
		p.notes = append(p.notes, func() {
			p.evidence.Presses[i].Answer, p.evidence.Presses[i].Answered = answer.Text, err == nil
		})
	})
}

func (p *player) squareOf(id telegram.ChatID) *square {
	for _, c := range p.town.chats {
		if c.ID() == id || c.before == id {
			return c
		}
	}
	return nil
}

func (p *player) press(s scenario.Press) {
	var button telegram.Button
	has := func(m telegram.Message) bool {
		keyboards := [][][]telegram.Button{m.Keyboard}
		if s.Old {
			for _, v := range slices.Backward(m.Versions) {
				keyboards = append(keyboards, v.Keyboard)
			}
		}
		for _, b := range slices.Concat(slices.Concat(keyboards...)...) {
			if s.Button.Is(b.Text) {
				button = b
				return true
			}
		}
		return false
	}
	if m, ok := p.about(s.Of, has); ok {
		p.tap(s.By, m, button)
	}
}

// pressAny presses one of the buttons in a chat.
func (p *player) pressAny(s scenario.PressAny) {
	type shown struct {
		on telegram.Message
		b  telegram.Button
	}
	c, topic, _ := p.town.find(s.In, s.By)
	var all []shown
	for _, m := range c.History() {
		if !m.From.Bot || m.Topic != topic || m.Deleted && !s.Old {
			continue
		}
		keyboards := [][][]telegram.Button{m.Keyboard}
		if s.Old {
			for _, v := range m.Versions {
				keyboards = append(keyboards, v.Keyboard)
			}
		}
		for _, b := range slices.Concat(slices.Concat(keyboards...)...) {
			all = append(all, shown{m, b})
		}
	}
	if len(all) > 0 {
		one := all[s.N%len(all)]
		p.tap(s.By, one.on, one.b)
	}
}
